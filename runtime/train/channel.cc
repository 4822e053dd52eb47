#include "runtime/train/channel.h"

#include <chrono>
#include <utility>

#include "common/log.h"
#include "common/status.h"

namespace ringmaster::train {
namespace {

constexpr std::chrono::seconds kDialTimeout{10};

}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> Channel::Dial(const std::string& path, Inbox& inbox) {
  RM_ASSIGN_OR_RETURN(auto socket, FramedSocket::Dial(path, kDialTimeout));
  return std::unique_ptr<Channel>(new Channel(std::move(socket), inbox));
}

Channel::Channel(std::unique_ptr<FramedSocket> socket, Inbox& inbox)
    : socket_(std::move(socket)), inbox_(inbox) {
  reader_ = std::thread([this] { Read(); });
}

Channel::~Channel() {
  socket_->Shutdown();
  reader_.join();
}

void Channel::Read() {
  while (true) {
    absl::StatusOr<std::string> frame = socket_->Receive();
    if (!frame.ok()) {
      inbox_.Close("the launcher is gone: " + Message(frame.status()));
      return;
    }
    absl::StatusOr<std::optional<Command>> command = DecodeCommand(*frame);
    if (!command.ok()) {
      log::Warning("command not understood", {{"error", command.status()}});
    } else if (*command) {
      inbox_.Push(**std::move(command));
    }
  }
}

void Channel::Send(int64_t round, const Event& event) {
  std::lock_guard lock(send_mutex_);
  const absl::Status sent = socket_->Send(encoder_.Encode(round, event));
  if (!sent.ok()) inbox_.Close("the launcher is gone: " + Message(sent));
}

}  // namespace ringmaster::train

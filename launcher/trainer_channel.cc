#include "launcher/trainer_channel.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>

#include "common/log.h"
#include "common/status.h"

namespace ringmaster::launcher {
namespace {

constexpr char kSocketName[] = "channel";
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainerChannel>> TrainerChannel::Open(EventLoop& loop,
                                                                     OnEvent event) {
  RM_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make());
  std::unique_ptr<TrainerChannel> channel(
      new TrainerChannel(loop, std::move(event), std::move(folder)));
  RM_RETURN_IF_ERROR(channel->Listen());
  return channel;
}

TrainerChannel::TrainerChannel(EventLoop& loop, OnEvent event, TemporaryFolder folder)
    : loop_(loop),
      event_(std::move(event)),
      folder_(std::move(folder)),
      path_(folder_.path() / kSocketName) {}

TrainerChannel::~TrainerChannel() {
  loop_.Cancel(accept_timer_);
  if (listener_.valid()) loop_.Unwatch(listener_.get());
  if (connection_.valid()) loop_.Unwatch(connection_.get());
}

absl::Status TrainerChannel::Listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_.valid() ||
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 1) != 0) {
    return ErrnoStatus(errno, path_);
  }
  WatchListener();
  return absl::OkStatus();
}

void TrainerChannel::WatchListener() {
  loop_.Watch(listener_.get(), POLLIN, [this](short) { Accept(); });
}

void TrainerChannel::Accept() {
  connection_.Reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!connection_.valid()) return AcceptLater(errno);
  loop_.Cancel(accept_timer_);
  loop_.Unwatch(listener_.get());
  listener_.Reset();
  folder_.Remove();  // the path has served; a launcher that is killed leaves nothing behind
  Flush();
}

// Where no descriptor is left, say, the listener stays ready: the loop would do nothing else.
void TrainerChannel::AcceptLater(int error) {
  if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return;
  if (std::exchange(accept_error_, error) != error) {
    log::Warning("cannot take the trainer's connection yet", {{"error", std::strerror(error)}});
  }
  loop_.Unwatch(listener_.get());
  loop_.Cancel(accept_timer_);
  accept_timer_ = loop_.After(kAcceptPause, [this] { WatchListener(); });
}

void TrainerChannel::WatchConnection() {
  if (!connection_.valid()) return;
  const short events = outgoing_.empty() ? POLLIN : POLLIN | POLLOUT;
  loop_.Watch(connection_.get(), events, [this](short ready) { Ready(ready); });
}

void TrainerChannel::Ready(short events) {
  if ((events & POLLOUT) != 0) Flush();
  if (connection_.valid() && (events & (POLLIN | POLLHUP | POLLERR)) != 0) ReadSome();
}

// False when nothing more is there.
bool TrainerChannel::ReadSome() {
  char buffer[1 << 16];
  const ssize_t got = ::recv(connection_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {
    Close("the trainer has closed it");
    return false;
  }
  parser_.Append(std::string_view(buffer, got));
  ParseFrames();
  return connection_.valid();
}

void TrainerChannel::ParseFrames() {
  while (true) {
    auto frame = parser_.Next();
    if (!frame.ok()) return Close(Message(frame.status()));
    if (!*frame) return;
    rendezvous::v1::FromTrainer message;
    if (!message.ParseFromString(**frame)) return Close("what it says is no message");
    event_(message.event());
  }
}

void TrainerChannel::Send(const rendezvous::v1::ToTrainer& message) {
  if (closed_) return;
  const std::string frame = EncodeFrame(message.SerializeAsString());
  if (outgoing_.size() + frame.size() > kQueueLimit)
    return Close("the trainer does not read what it is told");
  outgoing_ += frame;
  Flush();
}

void TrainerChannel::Flush() {
  if (!connection_.valid()) return;
  while (!outgoing_.empty()) {
    const ssize_t sent =
        ::send(connection_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    // Gone; what it wrote before is still to be read.
    if (sent < 0) {
      outgoing_.clear();
      break;
    }
    outgoing_.erase(0, sent);
  }
  WatchConnection();
}

void TrainerChannel::Drain() {
  if (listener_.valid()) Accept();
  while (connection_.valid() && ReadSome()) {
  }
}

void TrainerChannel::Close(const std::string& why) {
  log::Info("channel to the trainer closed", {{"why", why}});
  closed_ = true;
  loop_.Unwatch(connection_.get());
  connection_.Reset();
  outgoing_.clear();
}

}  // namespace ringmaster::launcher

// The launcher's end of the Unix socket to its native trainer (channel.proto). It listens in a
// folder of its own, which nobody else may enter, and takes one connection; then the folder goes.
//
// Not thread-safe: belongs to the event loop's thread.
#ifndef RINGMASTER_LAUNCHER_TRAINER_CHANNEL_H_
#define RINGMASTER_LAUNCHER_TRAINER_CHANNEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/framed_socket.h"
#include "common/temporary_folder.h"
#include "launcher/event_loop.h"
#include "ringmaster/rendezvous/v1/channel.pb.h"

namespace ringmaster::launcher {

class TrainerChannel {
 public:
  using OnEvent = std::function<void(const rendezvous::v1::Event&)>;

  // `event` is called for each that arrives. `loop` must outlive the channel.
  static absl::StatusOr<std::unique_ptr<TrainerChannel>> Open(EventLoop& loop, OnEvent event);
  ~TrainerChannel();  // closes the connection

  // For RINGMASTER_CHANNEL.
  const std::string& path() const { return path_; }

  // Queues the message, also before the trainer has dialled. A trainer that does not read until
  // kQueueLimit bytes wait loses its connection, which tells it that it is over.
  void Send(const rendezvous::v1::ToTrainer& message);

  // Takes what the trainer has written before it ended.
  void Drain();

 private:
  static constexpr size_t kQueueLimit = size_t{32} << 20;

  TrainerChannel(EventLoop& loop, OnEvent event, TemporaryFolder folder);
  absl::Status Listen();
  void WatchListener();
  void Accept();
  void AcceptLater(int error);
  void Ready(short events);
  bool ReadSome();
  void ParseFrames();
  void Flush();
  void WatchConnection();
  void Close(const std::string& why);

  EventLoop& loop_;
  const OnEvent event_;
  TemporaryFolder folder_;
  const std::string path_;
  UniqueFd listener_;
  EventLoop::TimerId accept_timer_ = 0;
  int accept_error_ = 0;  // the last one that was told
  UniqueFd connection_;
  FrameParser parser_;
  std::string outgoing_;
  bool closed_ = false;
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_TRAINER_CHANNEL_H_

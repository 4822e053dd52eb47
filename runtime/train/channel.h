// Channel: joins a session to its launcher's Unix socket (channel.proto): commands go into the
// inbox, events out. One thread of its own reads.
#ifndef RINGMASTER_RUNTIME_TRAIN_CHANNEL_H_
#define RINGMASTER_RUNTIME_TRAIN_CHANNEL_H_

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/framed_socket.h"
#include "runtime/train/inbox.h"
#include "runtime/train/messages.h"
#include "runtime/train/protocol.h"

namespace ringmaster::train {

class Channel final : public EventSink {
 public:
  // Connects to the launcher's socket and starts to read. `inbox` must outlive the channel; it is
  // closed when the launcher goes. Errors are FramedSocket::Dial's.
  static absl::StatusOr<std::unique_ptr<Channel>> Dial(const std::string& path, Inbox& inbox);
  // Ends the connection and joins the thread. Events that were sent arrive.
  ~Channel() override;

  // Blocks while the launcher does not read. Thread-safe.
  void Send(int64_t round, const Event& event) override;

 private:
  Channel(std::unique_ptr<FramedSocket> socket, Inbox& inbox);
  void Read();

  const std::unique_ptr<FramedSocket> socket_;
  Inbox& inbox_;
  std::mutex send_mutex_;
  EventEncoder encoder_;  // guarded by send_mutex_
  std::thread reader_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_CHANNEL_H_

// One Join stream of the gRPC service, between gRPC's callbacks and the registry. It lives from the
// call's begin until gRPC says that it is done, or longer while the registry still holds it as a
// Downstream.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_JOIN_STREAM_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_JOIN_STREAM_H_

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include <grpcpp/grpcpp.h>

#include "operator/rendezvous/greeters.h"
#include "operator/rendezvous/registry.h"
#include "ringmaster/rendezvous/v1/rendezvous.grpc.pb.h"

namespace ringmaster::rendezvous {

class JoinStream : public grpc::ServerBidiReactor<v1::FromWorker, v1::ToWorker>, public Downstream {
 public:
  // Enters the stream into the registry, which must outlive it, as must the greeters, and begins to
  // read.
  static JoinStream* Start(Registry& registry, Greeters& greeters, const std::string& source);

  void Send(const v1::ToWorker& message) override;
  void End(const absl::Status& status) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // A launcher that takes nothing for so long is not coming back.
  static constexpr size_t kQueueLimit = 4096;

  JoinStream(Registry& registry, Greeters& greeters) : registry_(registry), greeters_(greeters) {}
  // Hands a Hello to the registry, which may block, and reads on.
  void Greet();
  // Starts the next write, or finishes. gRPC is called without the lock: a callback may come at
  // once, on this thread.
  void Advance(std::unique_lock<std::mutex> lock);

  Registry& registry_;
  Greeters& greeters_;
  Registry::StreamId id_ = 0;
  std::shared_ptr<JoinStream> self_;  // until OnDone
  v1::FromWorker incoming_;           // the read in flight's

  std::mutex mutex_;
  std::deque<v1::ToWorker> queue_;  // the front is the write in flight while writing_
  bool writing_ = false;
  bool greeting_ = false;  // a greeter works on it: gRPC may not let go of it yet
  bool finished_ = false;  // Finish was called, or nothing may be written any more
  std::optional<grpc::Status> end_;
};

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_JOIN_STREAM_H_

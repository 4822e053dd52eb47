// A worker's side of the rendezvous, for tests: one Join stream over real gRPC. Every wait ends
// with the stream's deadline.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_TESTING_WORKER_CLIENT_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_TESTING_WORKER_CLIENT_H_

#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "ringmaster/rendezvous/v1/rendezvous.grpc.pb.h"

namespace ringmaster::rendezvous::testing {

// Not thread-safe, but that one thread may send while another receives.
class WorkerClient {
 public:
  // Over TLS when an authority is given, as a launcher does.
  explicit WorkerClient(const std::string& address, const std::string& ca_pem = "");
  ~WorkerClient();  // cancels the stream

  void Hello(const v1::Hello& hello);
  void Send(const v1::Event& event);
  void Heartbeat(std::int64_t round = 0);

  // The next message that is no heartbeat; nothing when the stream has ended.
  std::optional<v1::ToWorker> Next();
  // The next message of any kind.
  std::optional<v1::ToWorker> NextOfAny();

  // Closes this side.
  void SayNoMore();
  // Closes this side, reads what is left, and returns how the stream ended.
  grpc::Status Close();
  // Reads what is left and returns how the stream ended.
  grpc::Status WaitForEnd();
  // Breaks the stream as a dying process does.
  void Cancel();

 private:
  grpc::ClientContext context_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Rendezvous::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::FromWorker, v1::ToWorker>> stream_;
  bool finished_ = false;
};

// A Hello of a native worker of job default/digits.
v1::Hello MakeHello(const std::string& pod, const std::string& pod_uid, std::int64_t round = 0);

v1::Event MakeProgress(std::int64_t round, std::int64_t step);
v1::Event MakeReady(const std::string& address);
v1::Event MakeExited(int exit_code);
v1::Event MakeShard(std::int64_t round, std::int64_t step, const std::string& digest);

}  // namespace ringmaster::rendezvous::testing

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_TESTING_WORKER_CLIENT_H_

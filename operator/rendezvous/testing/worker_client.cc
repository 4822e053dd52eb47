#include "operator/rendezvous/testing/worker_client.h"

#include <chrono>

#include "common/contract.h"

namespace ringmaster::rendezvous::testing {
namespace {

constexpr auto kStreamDeadline = std::chrono::seconds(60);

}  // namespace

WorkerClient::WorkerClient(const std::string& address, const std::string& ca_pem) {
  grpc::ChannelArguments arguments;
  // Channels to the same address would share a connection and its back-off otherwise.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto credentials = grpc::InsecureChannelCredentials();
  if (!ca_pem.empty()) {
    arguments.SetSslTargetNameOverride(contract::kRendezvousServerName);
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca_pem;
    credentials = grpc::SslCredentials(options);
  }
  channel_ = grpc::CreateCustomChannel(address, credentials, arguments);
  stub_ = v1::Rendezvous::NewStub(channel_);
  context_.set_deadline(std::chrono::system_clock::now() + kStreamDeadline);
  stream_ = stub_->Join(&context_);
}

WorkerClient::~WorkerClient() {
  if (finished_) return;
  context_.TryCancel();
  stream_->Finish();
}

void WorkerClient::Hello(const v1::Hello& hello) {
  v1::FromWorker message;
  *message.mutable_hello() = hello;
  stream_->Write(message);
}

void WorkerClient::Send(const v1::Event& event) {
  v1::FromWorker message;
  *message.mutable_event() = event;
  stream_->Write(message);
}

void WorkerClient::Heartbeat(std::int64_t round) {
  v1::FromWorker message;
  message.mutable_heartbeat()->set_round(round);
  stream_->Write(message);
}

std::optional<v1::ToWorker> WorkerClient::NextOfAny() {
  v1::ToWorker message;
  if (!stream_->Read(&message)) return std::nullopt;
  return message;
}

std::optional<v1::ToWorker> WorkerClient::Next() {
  while (true) {
    std::optional<v1::ToWorker> message = NextOfAny();
    if (!message || !message->has_heartbeat()) return message;
  }
}

void WorkerClient::SayNoMore() {
  stream_->WritesDone();
}

grpc::Status WorkerClient::Close() {
  SayNoMore();
  return WaitForEnd();
}

grpc::Status WorkerClient::WaitForEnd() {
  while (NextOfAny()) {
  }
  finished_ = true;
  return stream_->Finish();
}

void WorkerClient::Cancel() {
  context_.TryCancel();
  finished_ = true;
  stream_->Finish();
}

v1::Hello MakeHello(const std::string& pod, const std::string& pod_uid, std::int64_t round) {
  v1::Hello hello;
  hello.set_namespace_("default");
  hello.set_job("digits");
  hello.set_pod(pod);
  hello.set_pod_uid(pod_uid);
  hello.set_round(round);
  hello.set_native(true);
  return hello;
}

v1::Event MakeProgress(std::int64_t round, std::int64_t step) {
  v1::Event event;
  event.set_round(round);
  event.mutable_progress()->set_step(step);
  event.mutable_progress()->set_accuracy(-1);
  return event;
}

v1::Event MakeReady(const std::string& address) {
  v1::Event event;
  event.mutable_ready()->set_address(address);
  return event;
}

v1::Event MakeExited(int exit_code) {
  v1::Event event;
  event.mutable_exited()->set_exit_code(exit_code);
  return event;
}

v1::Event MakeShard(std::int64_t round, std::int64_t step, const std::string& digest) {
  v1::Event event;
  event.set_round(round);
  event.mutable_shard_durable()->set_step(step);
  event.mutable_shard_durable()->set_digest(digest);
  return event;
}

}  // namespace ringmaster::rendezvous::testing

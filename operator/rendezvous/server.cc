#include "operator/rendezvous/server.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "common/status.h"
#include "operator/rendezvous/front_door.h"
#include "operator/rendezvous/greeters.h"
#include "operator/rendezvous/join_stream.h"

namespace ringmaster::rendezvous {
namespace {

// A Hello and an Exited with its log lines are a few kilobytes.
constexpr int kMaxMessageBytes = 1 << 20;
constexpr auto kShutdownPatience = std::chrono::seconds(2);
// Ticks in a heartbeat: what a time-out is late by at most.
constexpr int kTicksPerHeartbeat = 5;

class Service : public v1::Rendezvous::CallbackService {
 public:
  Service(Registry& registry, Greeters& greeters) : registry_(registry), greeters_(greeters) {}

  grpc::ServerBidiReactor<v1::FromWorker, v1::ToWorker>* Join(
      grpc::CallbackServerContext* context) override {
    return JoinStream::Start(registry_, greeters_, HostOf(context->peer()));
  }

 private:
  Registry& registry_;
  Greeters& greeters_;
};

// Calls the registry's Tick until it goes.
class Ticker {
 public:
  Ticker(Registry& registry, Duration interval)
      : thread_([this, &registry, interval] {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, interval, [this] { return stopped_; })) {
            lock.unlock();
            registry.Tick();
            lock.lock();
          }
        }) {}

  ~Ticker() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

// gRPC's own limits are raised: our heartbeats see what its pings would, and must not be taken for
// an attack.
void SetLimits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 16);
}

class RunningServer : public Server {
 public:
  RunningServer(Options options, const Clock& clock, PodVerifier& verifier,
                std::function<void(const kube::ObjectKey&)> changed)
      : host_(options.address.substr(0, options.address.rfind(':'))),
        timing_(options.timing),
        certificate_(std::move(options.certificate)),
        registry_({options.timing, std::move(options.secret), options.reviewer}, clock, verifier,
                  std::move(changed)),
        service_(registry_, greeters_) {
    if (options.stand_by) registry_.StandBy("");
  }

  ~RunningServer() override {
    door_.reset();
    ticker_.reset();
    registry_.StandBy("");  // ends the streams, so that the shutdown need not wait for them
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
  }

  absl::Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    SetLimits(builder);
    builder.RegisterService(&service_);
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, Credentials());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("the gRPC server did not start");
    const auto language = certificate_ ? FrontDoor::Language::kTls : FrontDoor::Language::kHttp2;
    RM_ASSIGN_OR_RETURN(door_, FrontDoor::Open(address, language, timing_.timeout,
                                               [this](UniqueFd fd, const std::string& read) {
                                                 HandOver(std::move(fd), read);
                                               }));
    ticker_ = std::make_unique<Ticker>(registry_, timing_.heartbeat / kTicksPerHeartbeat);
    return absl::OkStatus();
  }

  int port() const override { return door_->port(); }
  std::string address() const override { return fmt::format("{}:{}", host_, port()); }
  manager::WorkerLink& link() override { return registry_; }
  void StandBy(const std::string& leader) override { registry_.StandBy(leader); }
  void Activate() override { registry_.Activate(); }

 private:
  std::shared_ptr<grpc::ServerCredentials> Credentials() const {
    if (!certificate_) return grpc::InsecureServerCredentials();
    grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_key_cert_pairs.push_back({certificate_->key_pem, certificate_->certificate_pem});
    return grpc::SslServerCredentials(options);
  }

  void HandOver(UniqueFd fd, const std::string& read) {
    grpc::Slice slice(read);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd.Release();
    connection.read_buffer = grpc::ByteBuffer(&slice, 1);
    connections_->HandleNewConnection(&connection);
  }

  const std::string host_;
  const Timing timing_;
  const std::optional<Certificate> certificate_;
  Registry registry_;
  Greeters greeters_;
  Service service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<FrontDoor> door_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    Options options, const Clock& clock, PodVerifier& verifier,
    std::function<void(const kube::ObjectKey&)> changed) {
  const std::string address = options.address;
  auto server =
      std::make_unique<RunningServer>(std::move(options), clock, verifier, std::move(changed));
  RM_RETURN_IF_ERROR(server->Listen(address));
  return server;
}

}  // namespace ringmaster::rendezvous

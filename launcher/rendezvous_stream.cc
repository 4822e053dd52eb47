#include "launcher/rendezvous_stream.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <grpcpp/grpcpp.h>

#include "common/contract.h"
#include "ringmaster/rendezvous/v1/rendezvous.grpc.pb.h"

namespace ringmaster::launcher {
namespace {

using rendezvous::v1::FromWorker;
using rendezvous::v1::ToWorker;

constexpr int kMaxMessageBytes = 16 << 20;  // a round of ten thousand members
// The first connection of a fresh channel is the only one: the session has its own back-off.
constexpr int kConnectMilliseconds = 5000;
// gRPC has no callback for a connection that stands, so it is looked for, less and less often.
constexpr Duration kFirstLook = std::chrono::milliseconds(1);
constexpr Duration kLongestLook = std::chrono::milliseconds(20);

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const std::string& ca_pem) {
  grpc::ChannelArguments arguments;
  // A channel to the same address would otherwise share the last one's connection and back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMilliseconds);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  if (ca_pem.empty())
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  // Whatever address leads to an operator, its certificate is for the one name.
  arguments.SetSslTargetNameOverride(contract::kRendezvousServerName);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca_pem;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
}

// The handlers, reachable from posted work only for as long as the stream lives. Used on the loop's
// thread alone.
struct Target {
  RendezvousStream::Handlers handlers;
  bool alive = true;
};

class GrpcStream : public RendezvousStream, public grpc::ClientBidiReactor<FromWorker, ToWorker> {
 public:
  GrpcStream(EventLoop& loop, const std::string& address, const std::string& ca_pem,
             Handlers handlers)
      : loop_(loop),
        target_(std::make_shared<Target>(Target{std::move(handlers)})),
        channel_(MakeChannel(address, ca_pem)),
        stub_(rendezvous::v1::Rendezvous::NewStub(channel_)) {
    stub_->async()->Join(&context_, this);
    // Writes come from outside of the reactor's callbacks, until RemoveHold.
    AddHold();
    StartRead(&incoming_);
    StartCall();
    LookAgain();
  }

  ~GrpcStream() override {
    target_->alive = false;
    loop_.Cancel(look_timer_);
    context_.TryCancel();
    ReleaseHold();
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
  }

  void Write(const FromWorker& message) override {
    if (!held_) return;
    outgoing_ = message;
    StartWrite(&outgoing_);
  }

  void WritesDone() override {
    if (held_) StartWritesDone();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Tell([this] { ReleaseHold(); }, nullptr);
    Tell(nullptr, [message = incoming_](Handlers& handlers) { handlers.message(message); });
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    if (ok) Tell(nullptr, [](Handlers& handlers) { handlers.written(); });
  }

  void OnDone(const grpc::Status& status) override {
    const absl::Status end(static_cast<absl::StatusCode>(status.error_code()),
                           status.error_message());
    Tell(nullptr, [end](Handlers& handlers) { handlers.ended(end); });
    std::lock_guard lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

 private:
  // Runs on the loop's thread, if the stream is still there by then: first what concerns the stream
  // itself, then what concerns its handlers, which may destroy it.
  void Tell(std::function<void()> own, std::function<void(Handlers&)> work) {
    loop_.Post([target = target_, own = std::move(own), work = std::move(work)] {
      if (!target->alive) return;
      if (own) own();
      if (work) work(target->handlers);
    });
  }

  void LookAgain() {
    look_timer_ = loop_.After(look_, [this] { LookForConnection(); });
    look_ = std::min(2 * look_, kLongestLook);
  }

  void LookForConnection() {
    if (!held_) return;  // it has failed, or was there and is gone: `ended` follows
    if (channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY) return LookAgain();
    target_->handlers.connected();
  }

  void ReleaseHold() {
    if (!held_) return;
    held_ = false;
    RemoveHold();
  }

  EventLoop& loop_;
  const std::shared_ptr<Target> target_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<rendezvous::v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  ToWorker incoming_;
  FromWorker outgoing_;
  bool held_ = true;  // on the loop's thread, as what follows
  EventLoop::TimerId look_timer_ = 0;
  Duration look_ = kFirstLook;

  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<RendezvousStream> RendezvousStream::Dial(EventLoop& loop,
                                                         const std::string& address,
                                                         const std::string& ca_pem,
                                                         Handlers handlers) {
  return std::make_unique<GrpcStream>(loop, address, ca_pem, std::move(handlers));
}

}  // namespace ringmaster::launcher

// The native trainer: one process for the pod's whole life, told of rounds over its channel.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "common/contract.h"
#include "common/cpu_list.h"
#include "common/log.h"
#include "common/status.h"
#include "common/thread_waiting.h"
#include "launcher/cpu_binding.h"
#include "launcher/trainer_channel.h"
#include "launcher/workload.h"

namespace ringmaster::launcher {
namespace {

using rendezvous::v1::Command;
using rendezvous::v1::ToTrainer;

class NativeWorkload : public Workload {
 public:
  explicit NativeWorkload(WorkloadContext context) : context_(std::move(context)) {}
  ~NativeWorkload() override { context_.loop.Cancel(stop_timer_); }

  absl::Status Begin() override {
    RM_ASSIGN_OR_RETURN(
        channel_, TrainerChannel::Open(context_.loop, [this](const rendezvous::v1::Event& event) {
          context_.session.Report(event);
        }));
    std::map<std::string, std::string> environment = Binding();
    environment.merge(WaitingEnvironment());
    environment[contract::kEnvChannel] = channel_->path();
    return context_.program.Start({.command = context_.options.command,
                                   .environment = std::move(environment),
                                   .cpus = context_.options.cpus});
  }

  void Take(const Command& command) override {
    if (command.has_round()) {
      // Told again after a new dial: the trainer has it.
      if (command.round().number() <= round_) return;
      round_ = command.round().number();
      log::Info("round begins", {{"round", round_},
                                 {"rank", command.round().rank()},
                                 {"members", command.round().members_size()}});
    }
    if (command.has_checkpoint_committed())
      context_.session.ForgetShardsUpTo(command.checkpoint_committed().checkpoint().step());
    Tell(command);
    if (command.has_round()) context_.session.EnterRound(round_);
    if (command.has_stop()) context_.program.KillAfter(context_.options.stop_patience);
  }

  // The trainers agree on a step for a checkpoint, also while the operator is away; the operator is
  // told so that it knows this worker's end for what it is.
  void Leave() override {
    if (leaving_) return Stop();  // asked twice: at once, then
    leaving_ = true;
    rendezvous::v1::Event event;
    event.set_round(round_);
    event.mutable_drain_requested()->set_reason("the pod is terminating");
    context_.session.Report(event);
    ToTrainer message;
    message.mutable_drain()->set_reason("the pod is terminating");
    channel_->Send(message);
    const Duration grace = context_.options.grace;
    stop_timer_ = context_.loop.After(std::max(grace - context_.options.stop_patience, grace / 2),
                                      [this] { Stop(); });
    context_.program.KillAfter(grace);
  }

  void Ended(const ProgramEnd& end) override {
    channel_->Drain();
    ProgramEnd told = end;
    if (end.out_of_memory) told.exit_code = contract::kExitNoResource;
    context_.finish(told);
  }

 private:
  // Training is as right with threads that the system moves about, so it goes on without.
  std::map<std::string, std::string> Binding() const {
    const Options& options = context_.options;
    auto binding = BindingFor(options.bind, options.cpus.empty() ? AllowedCpus() : options.cpus,
                              options.kept_cores);
    if (binding.ok()) return *std::move(binding);
    log::Warning("compute threads are not bound to cores", {{"why", Message(binding.status())}});
    return {};
  }

  void Tell(const Command& command) {
    ToTrainer message;
    *message.mutable_command() = command;
    channel_->Send(message);
  }

  void Stop() {
    Command command;
    command.mutable_stop()->set_reason("the grace period is over");
    Tell(command);
    context_.program.KillAfter(context_.options.stop_patience);
  }

  WorkloadContext context_;
  std::unique_ptr<TrainerChannel> channel_;
  std::int64_t round_ = 0;
  bool leaving_ = false;
  EventLoop::TimerId stop_timer_ = 0;
};

}  // namespace

std::unique_ptr<Workload> MakeNativeWorkload(WorkloadContext context) {
  return std::make_unique<NativeWorkload>(std::move(context));
}

}  // namespace ringmaster::launcher

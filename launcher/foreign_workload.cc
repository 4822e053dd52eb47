// Any other program: it learns its place from its environment, so each round starts it anew.
#include <csignal>
#include <optional>
#include <span>

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "common/temporary_folder.h"
#include "launcher/foreign_env.h"
#include "launcher/workload.h"

namespace ringmaster::launcher {
namespace {

using rendezvous::v1::Command;
using rendezvous::v1::Round;

// As a shell reports a program that it cannot find or execute.
constexpr int kExitCannotExecute = 126;
constexpr int kExitNotFound = 127;
// Told to leave before there was a program to ask.
constexpr int kExitTerminated = 128 + SIGTERM;

class ForeignWorkload : public Workload {
 public:
  explicit ForeignWorkload(WorkloadContext context) : context_(std::move(context)) {}

  // Nothing runs before the first round: the program would not know its rank.
  absl::Status Begin() override {
    if (context_.options.mode != LaunchMode::kMpi) return absl::OkStatus();
    RM_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make());
    folder_.emplace(std::move(folder));
    return absl::OkStatus();
  }

  void Take(const Command& command) override {
    if (command.has_round()) TakeRound(command.round());
    if (command.has_drain()) StopForGood(context_.options.grace);
    if (command.has_stop()) StopForGood(context_.options.stop_patience);
    // A program that is not ours keeps its own checkpoints: the other commands do not concern it.
  }

  void Leave() override {
    if (leaving_) return StopForGood(Duration(0));  // asked twice: at once, then
    rendezvous::v1::Event event;
    event.set_round(round_);
    event.mutable_drain_requested()->set_reason("the pod is terminating");
    context_.session.Report(event);
    StopForGood(context_.options.grace);
  }

  void Ended(const ProgramEnd& end) override {
    if (pending_ && !leaving_) return StartPending();
    context_.finish(end);
  }

 private:
  void TakeRound(const Round& round) {
    if (round.number() <= round_ || leaving_) return;
    round_ = round.number();
    pending_ = round;
    context_.session.EnterRound(round_);
    if (!context_.program.running()) return StartPending();
    log::Info("program restarts for a new round", {{"round", round_}});
    context_.program.Stop(context_.options.grace);
  }

  void StartPending() {
    const Round round = *std::move(pending_);
    pending_.reset();
    const absl::Status status = Start(round);
    if (status.ok()) return;
    context_.finish(
        {absl::IsNotFound(status) ? kExitNotFound : kExitCannotExecute, Message(status)});
  }

  absl::Status Start(const Round& round) {
    std::string hostfile;
    if (folder_) {
      hostfile = folder_->path() / "hosts";
      RM_RETURN_IF_ERROR(WriteFileAtomically(hostfile, std::string_view(Hostfile(round))));
    }
    return context_.program.Start(
        {.command = context_.options.command,
         .environment =
             ForeignEnvironment(context_.options.mode, context_.options.job, round, hostfile),
         .cpus = context_.options.cpus});
  }

  void StopForGood(Duration grace) {
    leaving_ = true;
    pending_.reset();
    if (context_.program.running()) return context_.program.Stop(grace);
    context_.finish({kExitTerminated, "told to leave before the first round"});
  }

  WorkloadContext context_;
  std::optional<TemporaryFolder> folder_;  // of the host file
  std::optional<Round> pending_;           // to be started when the present one has ended
  std::int64_t round_ = 0;
  bool leaving_ = false;
};

}  // namespace

std::unique_ptr<Workload> MakeForeignWorkload(WorkloadContext context) {
  return std::make_unique<ForeignWorkload>(std::move(context));
}

}  // namespace ringmaster::launcher

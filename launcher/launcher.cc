#include "launcher/launcher.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "common/contract.h"
#include "common/host_port.h"
#include "common/log.h"
#include "common/peer_address.h"
#include "common/status.h"
#include "launcher/event_loop.h"
#include "launcher/health.h"
#include "launcher/program.h"
#include "launcher/rendezvous_session.h"
#include "launcher/workload.h"

namespace ringmaster::launcher {
namespace {

constexpr int kForwarded[] = {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

// Blocks what the launcher handles, for this thread and all that it starts.
absl::StatusOr<UniqueFd> TakeSignals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&handled, signal);
  for (const int signal : kForwarded) sigaddset(&handled, signal);
  ::pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "signalfd");
  return fd;
}

// Where peers reach a foreign program. The native trainer says itself where it listens.
absl::StatusOr<std::string> AddressForPeers(const Options& options) {
  if (options.mode == LaunchMode::kNative) return std::string();
  RM_ASSIGN_OR_RETURN(const std::string address, PeerAddress(options.pod_ip));
  return JoinHostPort(address, contract::kForeignMasterPort);
}

rendezvous::v1::Hello MakeHello(const Options& options, const std::string& address) {
  rendezvous::v1::Hello hello;
  hello.set_namespace_(options.ns);
  hello.set_job(options.job);
  hello.set_pod(options.pod);
  hello.set_pod_uid(options.pod_uid);
  hello.set_committed_step(-1);
  hello.set_native(options.mode == LaunchMode::kNative);
  hello.set_address(address);
  return hello;
}

class Launcher {
 public:
  Launcher(const Options& options, EventLoop& loop, UniqueFd signals)
      : options_(options),
        loop_(loop),
        signals_(std::move(signals)),
        address_(AddressForPeers(options)),
        program_(loop, [this](const ProgramEnd& end) { workload_->Ended(end); }),
        session_(loop,
                 {.addresses = options.rendezvous,
                  .ca_pem = options.rendezvous_ca,
                  .token_file = options.token_file,
                  .hello = MakeHello(options, address_.value_or(""))},
                 {[this](const rendezvous::v1::Command& command) {
                    if (!finished_) workload_->Take(command);
                  },
                  [this](const std::string& reason) { Refused(reason); }}),
        health_(loop, {.address = JoinHostPort(options.pod_ip, kHealthPort)},
                [this] { return Ready(); }) {
    WorkloadContext context{loop_, options_, program_, session_,
                            [this](const ProgramEnd& end) { Finish(end); }};
    workload_ = options_.mode == LaunchMode::kNative ? MakeNativeWorkload(std::move(context))
                                                     : MakeForeignWorkload(std::move(context));
  }

  int Run() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    loop_.Watch(signals_.get(), POLLIN, [this](short) { TakeSignals(); });
    WatchLifeline();
    if (const absl::Status status = Begin(); !status.ok())
      Finish({ExitCodeOfStart(status), Message(status)});
    loop_.Run();
    KillDescendants();
    return exit_code_;
  }

 private:
  absl::Status Begin() {
    RM_RETURN_IF_ERROR(address_.status());
    return workload_->Begin();
  }

  // A trainer that is not there, or is no program, and a network that is not there, are the image's
  // or the manifest's fault, not the data's.
  static int ExitCodeOfStart(const absl::Status& status) {
    const bool is_wrong = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
    return is_wrong ? contract::kExitBadConfig : ExitCodeFor(status);
  }

  void WatchLifeline() {
    if (options_.lifeline_fd < 0) return;
    // The program must not hold it: nobody's death would end it then.
    ::fcntl(options_.lifeline_fd, F_SETFD, FD_CLOEXEC);
    // Whoever started us may have asked that we be killed when it dies. But then what the program
    // has started itself would live on: we must stay to kill it. Only wake up, should we be
    // stopped.
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    loop_.Watch(options_.lifeline_fd, POLLIN, [this](short) { ReadLifeline(); });
  }

  void ReadLifeline() {
    char bytes[64];
    const ssize_t got = ::read(options_.lifeline_fd, bytes, sizeof bytes);
    if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
    log::Warning("whoever started this worker is gone: leaving");
    loop_.Unwatch(options_.lifeline_fd);
    finished_ = true;
    exit_code_ = contract::kExitPeerLost;
    loop_.Quit();
  }

  void TakeSignals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) {
        Reap();
      } else if (signal == SIGTERM || signal == SIGINT) {
        log::Info("asked to leave", {{"signal", signal}});
        Terminate();
      } else {
        program_.Signal(signal);
      }
    }
  }

  void Terminate() {
    const bool again = leave_by_.has_value();
    if (!again) leave_by_ = SystemClock().SteadyNow() + options_.grace + options_.last_moment;
    session_.Leaving();
    if (!finished_) return workload_->Leave();
    session_.Hasten(again ? Duration(0) : ClosePatience());
  }

  // A terminating pod is killed when its time is over, which would look like a failure.
  Duration ClosePatience() const {
    if (!leave_by_) return options_.close_patience;
    const auto left = std::chrono::duration_cast<Duration>(*leave_by_ - SystemClock().SteadyNow());
    return std::clamp(left, Duration(0), options_.close_patience);
  }

  void Reap() {
    while (true) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return;
      program_.Reaped(pid, status);
    }
  }

  // An operator that is away takes nothing from a worker that works.
  absl::Status Ready() const {
    if (finished_ || leave_by_) return absl::UnavailableError("the worker is leaving");
    if (session_.round() == 0) return absl::UnavailableError("not in a round yet");
    if (!program_.running()) return absl::UnavailableError("its program does not run");
    return absl::OkStatus();
  }

  // This pod is not the job's any more. While it is leaving anyway it may end its work.
  void Refused(const std::string& reason) {
    if (leave_by_ || finished_) return;
    forced_exit_code_ = contract::kExitPeerLost;
    if (program_.running()) return program_.Stop(options_.stop_patience);
    Finish({contract::kExitPeerLost, reason});
  }

  void Finish(const ProgramEnd& end) {
    if (finished_) return;
    finished_ = true;
    exit_code_ = forced_exit_code_.value_or(end.exit_code);
    if (exit_code_ != contract::kExitOk)
      log::Warning("worker failed", {{"exit_code", exit_code_}, {"message", end.last_lines}});
    KillDescendants();
    rendezvous::v1::Event event;
    event.mutable_exited()->set_exit_code(exit_code_);
    event.mutable_exited()->set_message(end.last_lines);
    event.mutable_exited()->set_out_of_memory(end.out_of_memory);
    session_.Report(event);
    session_.Leaving();
    session_.Close(ClosePatience(), [this](bool) { loop_.Quit(); });
  }

  const Options& options_;
  EventLoop& loop_;
  const UniqueFd signals_;
  const absl::StatusOr<std::string> address_;  // for peers
  Program program_;
  RendezvousSession session_;
  std::unique_ptr<Workload> workload_;
  std::optional<SteadyTime> leave_by_;  // once asked to leave
  bool finished_ = false;
  int exit_code_ = contract::kExitInternal;
  std::optional<int> forced_exit_code_;
  Health health_;  // last: it asks the others
};

}  // namespace

int RunLauncher(const Options& options) {
  auto signals = TakeSignals();
  if (!signals.ok()) {
    log::Error("the launcher does not start", {{"why", signals.status()}});
    return contract::kExitInternal;
  }
  auto loop = EventLoop::Create();
  if (!loop.ok()) {
    log::Error("the launcher does not start", {{"why", loop.status()}});
    return contract::kExitInternal;
  }
  Launcher launcher(options, **loop, *std::move(signals));
  return launcher.Run();
}

}  // namespace ringmaster::launcher

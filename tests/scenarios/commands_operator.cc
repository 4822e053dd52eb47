// The loop, time, and what goes wrong with the operator itself.
#include <cstdlib>

#include <fmt/format.h>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "tests/scenarios/render.h"
#include "tests/scenarios/runner.h"

namespace ringmaster::scenarios {
namespace {

// run
// Runs the loop until nothing is left to do at this time.
absl::Status Run(Runner& runner, const Command&, std::string* output) {
  *output += runner.Run();
  return absl::OkStatus();
}

// advance <seconds>
// Time passes, workers say meanwhile that they are there, and then the loop runs.
absl::Status Advance(Runner& runner, const Command& command, std::string* output) {
  const double seconds = std::strtod(command.words.at(0).c_str(), nullptr);
  runner.world().Advance(Duration(static_cast<std::int64_t>(seconds * 1e6)));
  *output += runner.Run();
  return absl::OkStatus();
}

absl::Status ErrorNamed(const std::string& name) {
  if (name == "conflict") return absl::AbortedError("the object has changed");
  if (name == "forbidden") return absl::PermissionDeniedError("exceeded quota: pods");
  return absl::UnavailableError("connection reset");
}

// fail call=<n> [error=unavailable|conflict|forbidden] [answer=lost]
// The n-th change that the operator makes from now fails. With answer=lost it is made, and only
// the answer does not arrive.
absl::Status Fail(Runner& runner, const Command& command, std::string*) {
  runner.world().client().FailCall(static_cast<int>(command.Number("call", 1)),
                                   ErrorNamed(command.Option("error")),
                                   command.Option("answer") == "lost");
  return absl::OkStatus();
}

// kill [after] call=<n>
// The operator dies just before the n-th change that it makes from now, or right after it.
absl::Status Kill(Runner& runner, const Command& command, std::string*) {
  const int call = static_cast<int>(command.Number("call", 1));
  if (command.words == std::vector<std::string>{"after"}) {
    runner.world().client().DieAfterCall(call);
  } else if (command.words.empty()) {
    runner.world().client().DieBeforeCall(call);
  } else {
    return absl::InvalidArgumentError("kill [after] call=<n>");
  }
  return absl::OkStatus();
}

// restart
// The operator starts anew on the same store, and no worker has dialled in yet.
absl::Status Restart(Runner& runner, const Command&, std::string*) {
  runner.world().RestartOperator();
  return absl::OkStatus();
}

// gang-scheduler <native|volcano|coscheduling>
// The operator starts anew on a cluster with this scheduler; groups of the native one are
// immutable.
absl::Status GangScheduler(Runner& runner, const Command& command, std::string*) {
  for (const reconcile::GangApi& api : reconcile::kGangApis) {
    if (api.name != command.words.at(0) || (api.name == "native" && api.resizable)) continue;
    runner.world().ServeGangs(&api);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("no gang scheduler {}", command.words[0]));
}

// status-interval <seconds>
// The operator starts anew, and writes a status that says nothing new no more often than this, as
// it does on a cluster: then a new job's pods may also come before its first status.
absl::Status StatusInterval(Runner& runner, const Command& command, std::string*) {
  const double seconds = std::strtod(command.words.at(0).c_str(), nullptr);
  runner.world().SetStatusInterval(Duration(static_cast<std::int64_t>(seconds * 1e6)));
  return absl::OkStatus();
}

// expire
// The store forgets its history: every watch answers 410 Gone, and the caches are listed anew.
absl::Status Expire(Runner& runner, const Command&, std::string*) {
  runner.world().ExpireHistory();
  return absl::OkStatus();
}

// What must be the same whatever happened to the operator on the way.
std::string EndState(Runner& runner) {
  const auto jobs = runner.world().api().List(kube::kTrainingJob, runner.job().ns, {});
  std::string text = jobs.ok() && !jobs->items.empty() ? "" : "no job\n";
  for (const kube::ObjectPtr& job : jobs->items) text += RenderStatus(*job);
  text += RenderPods(runner.Pods());
  for (const auto& [pod, times] : runner.world().client().created()) {
    if (times != 1) text += fmt::format("BROKEN: {} was created {} times\n", pod, times);
  }
  return text;
}

absl::Status RunAll(Runner& runner, const std::string& script) {
  RM_ASSIGN_OR_RETURN(const std::vector<Command> commands, ParseCommands(script));
  for (const Command& command : commands) (void)runner.Execute(command);
  return absl::OkStatus();
}

using Fate = void (*)(testing::RecordingClient& client, int n);

void Undisturbed(testing::RecordingClient&, int) {}
void DiesBefore(testing::RecordingClient& client, int n) {
  client.DieBeforeCall(n);
}
void DiesAfter(testing::RecordingClient& client, int n) {
  client.DieAfterCall(n);
}

// A world in which everything up to now has happened again, and then the script with an operator
// that meets its fate at the n-th change. Whether it did is in `died`.
absl::StatusOr<std::string> Replay(const std::vector<Command>& history, const std::string& script,
                                   Fate fate, int n, bool* died) {
  Runner runner;
  for (const Command& command : history) (void)runner.Execute(command);
  fate(runner.world().client(), n);
  RM_ASSIGN_OR_RETURN(const std::vector<Command> commands, ParseCommands(script));
  *died = false;
  for (const Command& command : commands) {
    (void)runner.Execute(command);
    if (!runner.world().client().dead()) continue;
    *died = true;
    runner.world().RestartOperator();
    RM_RETURN_IF_ERROR(RunAll(runner, "worker all join\nrun\n"));
  }
  return EndState(runner);
}

// crash-at-each-call
//   <commands>
// Plays the commands again and again, each time from the same state and with the operator killed
// before or right after another of the changes that it makes; it is then started anew and its
// workers dial in again. Each time the end state must be that of the undisturbed run, and no pod
// may have been created twice. Prints how many changes that were; the commands' effects do not
// stay.
absl::Status CrashAtEachCall(Runner& runner, const Command& command, std::string* output) {
  bool died = false;
  RM_ASSIGN_OR_RETURN(const std::string undisturbed,
                      Replay(runner.history(), command.input, Undisturbed, 0, &died));
  int n = 0;
  do {
    ++n;
    for (const auto& [when, fate] : {std::pair<const char*, Fate>{"before", DiesBefore},
                                     std::pair<const char*, Fate>{"after", DiesAfter}}) {
      RM_ASSIGN_OR_RETURN(const std::string state,
                          Replay(runner.history(), command.input, fate, n, &died));
      if (state == undisturbed) continue;
      *output +=
          fmt::format("BROKEN: killed {} call {}:\n{}instead of\n{}", when, n, state, undisturbed);
    }
  } while (died);
  *output += fmt::format("killed before and after each of {} calls\n{}", n - 1, undisturbed);
  return absl::OkStatus();
}

}  // namespace

void AddOperatorCommands(Handlers& handlers) {
  handlers["run"] = Run;
  handlers["advance"] = Advance;
  handlers["fail"] = Fail;
  handlers["kill"] = Kill;
  handlers["restart"] = Restart;
  handlers["gang-scheduler"] = GangScheduler;
  handlers["status-interval"] = StatusInterval;
  handlers["expire"] = Expire;
  handlers["crash-at-each-call"] = CrashAtEachCall;
}

}  // namespace ringmaster::scenarios

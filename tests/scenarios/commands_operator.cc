// The loop, time, and what goes wrong with the operator itself.
#include <cstdlib>

#include <fmt/format.h>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "tests/scenarios/crashes.h"
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

// crash-at-each-call
//   <commands>
// Plays the commands again and again, each time from the same state and with the operator killed
// before or right after another of the changes that it makes (crashes.h). Prints how many changes
// that were, and the end; the commands' effects do not stay.
absl::Status CrashAtEachCall(Runner& runner, const Command& command, std::string* output) {
  RM_ASSIGN_OR_RETURN(const std::vector<Command> commands, ParseCommands(command.input));
  const Crashes crashes = PlayCrashes(runner.history(), commands, Seconds::kMustBeSame);
  *output += crashes.broken;
  *output +=
      fmt::format("killed before and after each of {} calls\n{}", crashes.calls, crashes.end);
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

#include "tests/scenarios/crashes.h"

#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tests/scenarios/render.h"
#include "tests/scenarios/runner.h"

namespace ringmaster::scenarios {
namespace {

using Fate = void (*)(testing::RecordingClient& client, int n);

void LivesOn(testing::RecordingClient&, int) {}
void DiesBefore(testing::RecordingClient& client, int n) {
  client.DieBeforeCall(n);
}
void DiesAfter(testing::RecordingClient& client, int n) {
  client.DieAfterCall(n);
}

std::string WithoutSeconds(const std::string& text) {
  std::string rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("lost detect")) rest += line + "\n";
  }
  return rest;
}

// What must be the same whatever happened to the operator on the way.
std::string EndState(Runner& runner, Seconds seconds) {
  const auto jobs = runner.world().api().List(kube::kTrainingJob, runner.job().ns, {});
  if (!jobs.ok()) return fmt::format("no list of jobs: {}\n", jobs.status().ToString());
  std::string text = jobs->items.empty() ? "no job\n" : "";
  for (const kube::ObjectPtr& job : jobs->items) text += RenderStatus(*job);
  text += RenderPods(runner.Pods());
  for (const auto& [pod, times] : runner.world().client().created()) {
    if (times != 1) text += fmt::format("{} was created {} times\n", pod, times);
  }
  return seconds == Seconds::kMustBeSame ? text : WithoutSeconds(text);
}

struct End {
  bool died = false;
  std::string state;
};

// The story with an operator that meets its fate at the n-th change of it.
End Play(const std::vector<Command>& history, const std::vector<Command>& story, Seconds seconds,
         Fate fate, int n) {
  Runner runner;
  for (const Command& command : history) (void)runner.Execute(command);
  fate(runner.world().client(), n);
  End end;
  for (const Command& command : story) {
    (void)runner.Execute(command);
    if (!runner.world().client().dead()) continue;
    end.died = true;
    runner.world().RestartOperator();
    runner.world().workers().DialAgain();
    (void)runner.Run();
  }
  end.state = EndState(runner, seconds);
  return end;
}

}  // namespace

Crashes PlayCrashes(const std::vector<Command>& history, const std::vector<Command>& story,
                    Seconds seconds) {
  Crashes crashes{.end = Play(history, story, seconds, LivesOn, 0).state};
  for (int n = 1;; ++n) {
    for (const auto& [when, fate] : {std::pair<const char*, Fate>{"before", DiesBefore},
                                     std::pair<const char*, Fate>{"after", DiesAfter}}) {
      const End end = Play(history, story, seconds, fate, n);
      if (!end.died) return crashes;
      crashes.calls = n;
      if (end.state != crashes.end) {
        crashes.broken += fmt::format("BROKEN: killed {} call {}:\n{}instead of\n{}", when, n,
                                      end.state, crashes.end);
      }
    }
  }
}

}  // namespace ringmaster::scenarios

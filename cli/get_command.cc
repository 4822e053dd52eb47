#include "cli/get_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "cli/job_view.h"
#include "cli/run_directory.h"
#include "cli/snapshot.h"
#include "cli/text.h"
#include "common/contract.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr char kNone[] = "–";

std::string OrNone(const std::string& text) {
  return text.empty() ? kNone : text;
}

std::string LossText(const Json& job) {
  const Json* loss = kube::Find(job, {"status", "progress", "loss"});
  return loss != nullptr && loss->is_number() ? fmt::format("{:.3f}", loss->get<double>()) : kNone;
}

// 0 stands for none yet.
std::string NumberText(const Json& job, kube::FieldPath path) {
  const int64_t number = kube::FindInt(job, path).value_or(0);
  return number == 0 ? kNone : fmt::format("{}", number);
}

}  // namespace

std::string JobTable(const std::vector<Json>& jobs, Time now, const JobColumns& columns) {
  std::vector<std::vector<std::string>> rows{
      {"NAME", "STATE", "WORKERS", "STEP", "LOSS", "RESTARTS", "AGE"}};
  for (const Json& job : jobs) {
    rows.push_back(
        {kube::Name(job), OrNone(kube::FindString(job, {"status", "state"})),
         OrNone(kube::FindString(job, {"status", "workers", "summary"})),
         OrNone(kube::FindString(job, {"status", "progress", "summary"})), LossText(job),
         fmt::format("{}", kube::FindInt(job, {"status", "restarts", "total"}).value_or(0)),
         Ago(kube::FindTime(job, {"metadata", "creationTimestamp"}), now)});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json* job = i == 0 ? nullptr : &jobs[i - 1];
    if (columns.wide) {
      rows[i].push_back(job == nullptr ? "ROUND" : NumberText(*job, {"status", "round"}));
      rows[i].push_back(job == nullptr
                            ? "CHECKPOINT"
                            : NumberText(*job, {"status", "progress", "lastCheckpointStep"}));
    }
    if (columns.ns)
      rows[i].insert(rows[i].begin(), job == nullptr ? "NAMESPACE" : kube::Namespace(*job));
  }
  return FormatTable(rows);
}

std::string EventTable(const std::vector<Json>& events, Time now) {
  std::vector<const Json*> ordered;
  for (const Json& event : events) ordered.push_back(&event);
  std::ranges::sort(ordered, {}, [](const Json* event) { return MomentOf(*event); });
  std::vector<std::vector<std::string>> rows{{"LAST SEEN", "TYPE", "REASON", "MESSAGE"}};
  for (const Json* event : ordered) {
    rows.push_back({Ago(kube::FindTime(*event, {"lastTimestamp"}), now),
                    kube::FindString(*event, {"type"}), kube::FindString(*event, {"reason"}),
                    kube::FindString(*event, {"message"})});
  }
  return FormatTable(rows);
}

int Get(const GetOptions& options) {
  const std::vector<std::string> names =
      options.job.empty() ? JobsUnder() : std::vector{options.job};
  std::vector<Json> jobs;
  std::vector<Json> events;
  int exit_code = contract::kExitOk;
  for (const std::string& name : names) {
    const auto snapshot = Snapshot::Of(RunDirectory(name));
    if (!snapshot.ok()) {
      exit_code = FailWith(snapshot.status());
      continue;
    }
    jobs.push_back(snapshot->job());
    events.insert(events.end(), snapshot->events().begin(), snapshot->events().end());
  }
  const Time now = SystemClock().Now();
  if (options.output == "json") {
    for (const Json& job : jobs) fmt::print("{}\n", job.dump(2));
  } else if (names.empty()) {
    fmt::print(stderr, "no jobs under {}\n", std::filesystem::current_path().string());
  } else if (!jobs.empty()) {
    fmt::print("{}", options.events ? EventTable(events, now) : JobTable(jobs, now));
  }
  return exit_code;
}

}  // namespace ringmaster::cli

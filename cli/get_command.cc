#include "cli/get_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdlib.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/run_directory.h"
#include "cli/text.h"
#include "common/contract.h"
#include "common/file.h"
#include "common/status.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr char kNone[] = "–";

// A copy of a job's store as it is now. The process that runs the job has the journal to itself, so
// a copy of the file is opened; a line that was being written is dropped, as after a crash.
class Snapshot {
 public:
  explicit Snapshot(const RunDirectory& directory) {
    char pattern[] = "/tmp/ringmaster-get-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) return;
    folder_ = pattern;
    const auto content = ReadFile(directory.journal());
    if (!content.ok() || !WriteFileAtomically(folder_ / "store.journal", *content).ok()) return;
    kube::memory::StoreOptions options;
    options.journal_path = (folder_ / "store.journal").string();
    auto store = kube::memory::MemoryStore::Open(options);
    if (store.ok()) store_ = *std::move(store);
  }
  ~Snapshot() {
    store_.reset();
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  std::vector<Json> List(const kube::ResourceType& type) const {
    std::vector<Json> objects;
    if (store_ == nullptr) return objects;
    const auto list = store_->List(type, "", {});
    if (!list.ok()) return objects;
    for (const kube::ObjectPtr& object : list->items) objects.push_back(*object);
    return objects;
  }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<kube::memory::MemoryStore> store_;
};

std::string OrNone(const std::string& text) {
  return text.empty() ? kNone : text;
}

std::string Age(const std::string& since, Time now) {
  const auto time = ParseTime(since);
  return time.ok() ? FormatDuration(now - *time) : kNone;
}

std::string LossText(const Json& job) {
  const Json* loss = kube::Find(job, {"status", "progress", "loss"});
  return loss != nullptr && loss->is_number() ? fmt::format("{:.3f}", loss->get<double>()) : kNone;
}

}  // namespace

std::string JobTable(const std::vector<Json>& jobs, Time now) {
  std::vector<std::vector<std::string>> rows{
      {"NAME", "STATE", "WORKERS", "STEP", "LOSS", "RESTARTS", "AGE"}};
  for (const Json& job : jobs) {
    rows.push_back(
        {kube::Name(job), OrNone(kube::FindString(job, {"status", "state"})),
         OrNone(kube::FindString(job, {"status", "workers", "summary"})),
         OrNone(kube::FindString(job, {"status", "progress", "summary"})), LossText(job),
         fmt::format("{}", kube::FindInt(job, {"status", "restarts", "total"}).value_or(0)),
         Age(kube::FindString(job, {"metadata", "creationTimestamp"}), now)});
  }
  return FormatTable(rows);
}

std::string EventTable(const std::vector<Json>& events, Time now) {
  std::vector<const Json*> ordered;
  for (const Json& event : events) ordered.push_back(&event);
  std::ranges::stable_sort(
      ordered, {}, [](const Json* event) { return kube::FindString(*event, {"lastTimestamp"}); });
  std::vector<std::vector<std::string>> rows{{"LAST SEEN", "TYPE", "REASON", "MESSAGE"}};
  for (const Json* event : ordered) {
    rows.push_back({Age(kube::FindString(*event, {"lastTimestamp"}), now),
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
  for (const std::string& name : names) {
    const RunDirectory directory(name);
    if (!directory.HasJournal()) {
      fmt::print(stderr, "{}: no such job under {}\n", name,
                 std::filesystem::current_path().string());
      return contract::kExitBadData;
    }
    const Snapshot snapshot(directory);
    for (Json& job : snapshot.List(kube::kTrainingJob)) jobs.push_back(std::move(job));
    for (Json& event : snapshot.List(kube::kEvent)) events.push_back(std::move(event));
  }
  const Time now = SystemClock().Now();
  if (options.events) {
    fmt::print("{}", EventTable(events, now));
  } else if (options.output == "json") {
    for (const Json& job : jobs) fmt::print("{}\n", job.dump(2));
  } else if (jobs.empty()) {
    fmt::print("no jobs under {}\n", std::filesystem::current_path().string());
  } else {
    fmt::print("{}", JobTable(jobs, now));
  }
  return contract::kExitOk;
}

}  // namespace ringmaster::cli

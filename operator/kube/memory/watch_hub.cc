#include "operator/kube/memory/watch_hub.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

absl::Status TooOld(Revision revision, Revision forgotten) {
  return Expired(fmt::format("too old resource version: {} ({})", revision, forgotten));
}

ObjectPtr WithRevision(const Json& object, Revision revision) {
  auto copy = std::make_shared<Json>(object);
  (*copy)["metadata"]["resourceVersion"] = std::to_string(revision);
  return copy;
}

}  // namespace

class HubStream final : public WatchStream {
 public:
  HubStream(std::shared_ptr<WatchHub> hub, WatchHub::Filter filter, Revision from)
      : hub_(std::move(hub)), filter_(std::move(filter)), cursor_(from), told_(from) {}

  absl::StatusOr<WatchEvent> Next(std::chrono::milliseconds timeout) override {
    // The bound keeps a huge time-out from overflowing the clock.
    const auto deadline = std::chrono::steady_clock::now() +
                          std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24));
    std::unique_lock lock(hub_->mutex_);
    while (true) {
      if (absl::Status over = Over(); !over.ok()) return over;
      if (auto event = Poll()) return *std::move(event);
      if (timeout.count() <= 0 ||
          hub_->changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
        if (std::chrono::steady_clock::now() >= deadline)
          return absl::DeadlineExceededError("no watch event in time");
      }
    }
  }

  void Stop() override {
    const std::lock_guard lock(hub_->mutex_);
    stopped_ = true;
    hub_->changed_.notify_all();
  }

 private:
  // Why the stream has ended, if it has. Needs the hub's mutex, as does all below.
  absl::Status Over() {
    if (stopped_) return absl::CancelledError("the watch was stopped");
    if (hub_->closed_) return absl::UnavailableError("the store was closed");
    const Revision forgotten = hub_->HistoryOf(filter_.kind).forgotten;
    if (cursor_ < forgotten) return TooOld(cursor_, forgotten);
    return absl::OkStatus();
  }

  std::optional<WatchEvent> Poll() {
    const auto& changes = hub_->HistoryOf(filter_.kind).changes;
    auto it = std::upper_bound(
        changes.begin(), changes.end(), cursor_,
        [](Revision revision, const Change& change) { return revision < change.revision; });
    for (; it != changes.end(); ++it) {
      cursor_ = it->revision;
      if (auto event = Translate(*it)) {
        told_ = cursor_;
        return event;
      }
    }
    cursor_ = hub_->latest_;
    return Bookmark();
  }

  // What this change looks like through the filter; nothing when it cannot be seen.
  std::optional<WatchEvent> Translate(const Change& change) const {
    if (!filter_.ns.empty() && Namespace(*change.object) != filter_.ns) return std::nullopt;
    const bool was = change.previous != nullptr && filter_.selector.Matches(*change.previous);
    const bool is = !change.removed && filter_.selector.Matches(*change.object);
    if (is)
      return WatchEvent{was ? WatchEventType::kModified : WatchEventType::kAdded, change.object};
    if (!was) return std::nullopt;
    if (change.removed) return WatchEvent{WatchEventType::kDeleted, change.object};
    return WatchEvent{WatchEventType::kDeleted, WithRevision(*change.previous, change.revision)};
  }

  std::optional<WatchEvent> Bookmark() {
    if (!filter_.bookmarks || hub_->latest_ - told_ < hub_->options_.bookmark_every)
      return std::nullopt;
    told_ = hub_->latest_;
    const Json bare = {{"apiVersion", filter_.type.ApiVersion()},
                       {"kind", std::string(filter_.type.kind)}};
    return WatchEvent{WatchEventType::kBookmark, WithRevision(bare, told_)};
  }

  const std::shared_ptr<WatchHub> hub_;
  const WatchHub::Filter filter_;
  Revision
      cursor_;  // everything up to here was looked at; guarded by the hub's mutex, as is all below
  Revision told_;  // the last revision that the reader was given
  bool stopped_ = false;
};

WatchHub::WatchHub(const Options& options, Revision start)
    : options_(options), start_(start), latest_(start) {}

WatchHub::History& WatchHub::HistoryOf(const std::string& kind) {
  return histories_.try_emplace(kind, History{{}, start_}).first->second;
}

void WatchHub::Publish(const std::string& kind, Change change) {
  const std::lock_guard lock(mutex_);
  latest_ = change.revision;
  History& history = HistoryOf(kind);
  history.changes.push_back(std::move(change));
  if (history.changes.size() > options_.history) {
    history.forgotten = history.changes.front().revision;
    history.changes.pop_front();
  }
  changed_.notify_all();
}

absl::StatusOr<std::unique_ptr<WatchStream>> WatchHub::Open(Filter filter, Revision from) {
  const std::lock_guard lock(mutex_);
  const Revision forgotten = HistoryOf(filter.kind).forgotten;
  if (from < forgotten) return TooOld(from, forgotten);
  if (from > latest_)
    return Expired(fmt::format("too large resource version: {}, current: {}", from, latest_));
  return std::unique_ptr<WatchStream>(new HubStream(shared_from_this(), std::move(filter), from));
}

void WatchHub::Forget() {
  const std::lock_guard lock(mutex_);
  start_ = latest_;
  for (auto& [kind, history] : histories_) history = History{{}, latest_};
  changed_.notify_all();
}

void WatchHub::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace ringmaster::kube::memory

#include "operator/controller/event_queue.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/log.h"
#include "operator/kube/object.h"

namespace ringmaster::controller {
namespace {

// How often it is looked whether what is more urgent is over: nobody says so.
constexpr std::chrono::milliseconds kLookEvery{100};

std::string KeyOf(const kube::Json& event) {
  return kube::Namespace(event) + "/" + kube::Name(event);
}

}  // namespace

EventQueue::EventQueue(EventRecorder& recorder, const Clock& clock, Options options)
    : recorder_(recorder), clock_(clock), options_(std::move(options)) {
  writer_ = std::thread([this] { Run(); });
}

EventQueue::~EventQueue() {
  Stop();
}

void EventQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) drain_until_ = clock_.SteadyNow() + options_.drain;
    stopping_ = true;
    changed_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

void EventQueue::Tell(const kube::ResourceType& type, const kube::Json& object,
                      const EventNote& note) {
  kube::Json event = recorder_.Make(type, object, note);
  std::string key = KeyOf(event);
  bool drops = false;
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && CountIfWaiting(key, event)) return;
    drops = stopping_ || waiting_.size() >= options_.capacity;
    if (!drops) dropping_ = false;
    if (drops && !stopping_ && !std::exchange(dropping_, true)) {
      log::Warning("events are dropped: more are told than the API server takes in time",
                   {{"waiting", waiting_.size()}, {"reason", note.reason}});
    }
    if (!drops || MakeRoomFor(note.type)) {
      waiting_.push_back(
          {std::move(key), std::move(event), note.type == EventType::kWarning, clock_.SteadyNow()});
      changed_.notify_one();
    }
  }
  if (drops) Observe("dropped");
}

// Where the queue is full: whether it gives up another event for this one.
bool EventQueue::MakeRoomFor(EventType type) {
  if (stopping_ || type != EventType::kWarning) return false;
  const auto calm = std::ranges::find(waiting_, false, &Waiting::warning);
  if (calm == waiting_.end()) return false;
  waiting_.erase(calm);
  return true;
}

bool EventQueue::CountIfWaiting(const std::string& key, const kube::Json& event) {
  const auto same = std::ranges::find(waiting_, key, &Waiting::key);
  if (same == waiting_.end()) return false;
  same->event["count"] = kube::FindInt(same->event, {"count"}).value_or(1) + 1;
  same->event["lastTimestamp"] = event["lastTimestamp"];
  return true;
}

// What is to be written now; the end where nothing is.
std::deque<EventQueue::Waiting>::iterator EventQueue::Next() {
  if (waiting_.empty() || stopping_ || !options_.yields) return waiting_.begin();
  if (clock_.SteadyNow() - waiting_.front().since >= options_.patience || !options_.yields())
    return waiting_.begin();
  const auto warning = std::ranges::find(waiting_, true, &Waiting::warning);
  const bool is_half_full = 2 * waiting_.size() >= options_.capacity;
  return warning == waiting_.end() && is_half_full ? waiting_.begin() : warning;
}

void EventQueue::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_ || (!waiting_.empty() && clock_.SteadyNow() < drain_until_)) {
    const auto next = Next();
    if (next == waiting_.end()) {
      if (waiting_.empty()) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, kLookEvery);
      }
      continue;
    }
    const kube::Json event = std::move(next->event);
    waiting_.erase(next);
    lock.unlock();
    Observe(recorder_.Write(event).ok() ? "recorded" : "failed");
    lock.lock();
  }
  if (waiting_.empty()) return;
  log::Warning("events were not recorded before the end", {{"dropped", waiting_.size()}});
  for (std::size_t i = 0; i < waiting_.size(); ++i) Observe("dropped");
  waiting_.clear();
}

void EventQueue::Observe(std::string_view outcome) const {
  if (options_.observer) options_.observer(outcome);
}

}  // namespace ringmaster::controller

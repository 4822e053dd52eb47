// Records events beside the work that they tell of: who tells goes on at once, and one thread
// writes what was told, one call at a time, as client-go's recorder does.
//
//   EventQueue queue(recorder, SystemClock(), {});
//   queue.Tell(kube::kTrainingJob, job, {EventType::kNormal, "PodsCreated", "Created 8 pods."});
//   queue.Stop();   // or its destruction: what waits is written, within a bound
//
// What is told again while it waits is written once, with its count. An event carries the time at
// which it was told. What waits when the process dies is lost, as events may be.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_EVENT_QUEUE_H_
#define RINGMASTER_OPERATOR_CONTROLLER_EVENT_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "operator/controller/events.h"

namespace ringmaster::controller {

class EventQueue : public EventSink {
 public:
  // What came of an event: "recorded", "failed" (the API server did not take it), "dropped" (too
  // many waited, or it was told when the end had come). Called from any thread.
  using Observer = std::function<void(std::string_view outcome)>;

  struct Options {
    // Events that wait. What is told beyond is dropped, or, where it is a warning, the oldest that
    // is none.
    std::size_t capacity = 1000;
    // Whether something more urgent is under way. While it is, events that are no warnings wait,
    // each for `patience` at most, and while the queue is less than half full. Empty: never. Called
    // from the queue's thread.
    std::function<bool()> yields;
    Duration patience = std::chrono::seconds(10);
    // How long Stop goes on writing; a call that is under way then is waited for.
    Duration drain = std::chrono::seconds(5);
    Observer observer;  // may be empty
  };

  // The references must outlive the queue.
  EventQueue(EventRecorder& recorder, const Clock& clock, Options options);
  ~EventQueue() override;  // Stop
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void Tell(const kube::ResourceType& type, const kube::Json& object,
            const EventNote& note) override;  // never blocks for long

  // Writes what waits, urgent or not, and drops what is left when its time is up. Idempotent, from
  // one thread.
  void Stop();

 private:
  struct Waiting {
    std::string key;  // the same for what is the same event
    kube::Json event;
    bool warning;
    SteadyTime since;
  };

  // Both need mutex_.
  bool CountIfWaiting(const std::string& key, const kube::Json& event);
  bool MakeRoomFor(EventType type);
  std::deque<Waiting>::iterator Next();

  void Run();
  void Observe(std::string_view outcome) const;

  EventRecorder& recorder_;
  const Clock& clock_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;  // the oldest first; guarded by mutex_, as is all below
  bool dropping_ = false;        // since the queue was last below its capacity
  bool stopping_ = false;
  SteadyTime drain_until_{};
  std::thread writer_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_EVENT_QUEUE_H_

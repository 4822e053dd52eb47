#include "operator/controller/event_queue.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::controller {
namespace {

using kube::Json;
using kube::kTrainingJob;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::chrono::seconds kDeadline{20};

// A door that the writer's calls go through.
class Door {
 public:
  void Shut() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait_for(lock, kDeadline, [this] { return open_; });
  }
  // Until so many calls have come to it.
  bool AwaitArrived(int calls) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return arrived_ >= calls; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;  // guarded by mutex_, as is the next
  int arrived_ = 0;
};

class EventQueueTest : public ::testing::Test {
 protected:
  EventQueueTest() {
    client_.SetObserver([this](const kube::testing::Call& call) {
      if (call.type == "events") door_.Pass();
    });
  }

  void Start(EventQueue::Options options) {
    options.observer = [this](std::string_view outcome) {
      const std::lock_guard lock(mutex_);
      ++outcomes_[std::string(outcome)];
    };
    queue_.emplace(recorder_, clock_, std::move(options));
  }
  void Tell(const std::string& message, EventType type = EventType::kNormal) {
    queue_->Tell(kTrainingJob, job_, {type, "Reason", message});
  }
  std::map<std::string, int> Outcomes() {
    const std::lock_guard lock(mutex_);
    return outcomes_;
  }
  // The messages of the events that are stored, with their counts.
  std::map<std::string, int> Stored() {
    std::map<std::string, int> stored;
    const kube::ObjectList list = store_->List(kube::kEvent, "ns", {}).value();
    for (const kube::ObjectPtr& event : list.items) stored[(*event)["message"]] = (*event)["count"];
    return stored;
  }

  FakeClock clock_;
  std::unique_ptr<kube::memory::MemoryStore> store_ =
      *kube::memory::MemoryStore::Open({.clock = &clock_});
  kube::testing::FaultClient client_{*store_};
  EventRecorder recorder_{client_, clock_, "ringmaster-operator"};
  Json job_ = *store_->Create(kTrainingJob, kube::NewObject(kTrainingJob, {"ns", "digits"}));
  Door door_;
  std::mutex mutex_;
  std::map<std::string, int> outcomes_;  // guarded by mutex_
  std::optional<EventQueue> queue_;      // last: its thread uses all of the above
};

TEST_F(EventQueueTest, WritesWhatItIsToldWithoutHoldingUpWhoTells) {
  door_.Shut();
  Start({});
  Tell("first");
  ASSERT_TRUE(door_.AwaitArrived(1));
  clock_.Advance(std::chrono::seconds(5));
  Tell("second");
  clock_.Advance(std::chrono::seconds(5));
  door_.Open();
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("first", 1), Pair("second", 1)));
  EXPECT_THAT(Outcomes(), ElementsAre(Pair("recorded", 2)));
  const kube::ObjectList list = store_->List(kube::kEvent, "ns", {}).value();
  for (const kube::ObjectPtr& event : list.items) {
    if ((*event)["message"] != "second") continue;
    EXPECT_EQ((*event)["firstTimestamp"], "2026-01-01T00:00:05Z") << "when it was told";
  }
}

TEST_F(EventQueueTest, WhatIsToldAgainWhileItWaitsIsWrittenOnceWithItsCount) {
  door_.Shut();
  Start({});
  Tell("first");
  ASSERT_TRUE(door_.AwaitArrived(1));
  for (int i = 0; i < 3; ++i) Tell("again");
  Tell("first");
  door_.Open();
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("again", 3), Pair("first", 2)));
}

TEST_F(EventQueueTest, WhatIsMoreThanItHoldsIsDroppedAndCounted) {
  door_.Shut();
  Start({.capacity = 2});
  Tell("first");
  ASSERT_TRUE(door_.AwaitArrived(1));
  for (const char* message : {"a", "b", "c", "d", "a"}) Tell(message);
  door_.Open();
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("a", 2), Pair("b", 1), Pair("first", 1)));
  EXPECT_THAT(Outcomes(), ElementsAre(Pair("dropped", 2), Pair("recorded", 3)));
}

TEST_F(EventQueueTest, AWarningTakesThePlaceOfTheOldestThatIsNoneWhereItIsFull) {
  door_.Shut();
  Start({.capacity = 2});
  Tell("first");
  ASSERT_TRUE(door_.AwaitArrived(1));
  Tell("a");
  Tell("b");
  Tell("x", EventType::kWarning);
  Tell("c");
  door_.Open();
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("b", 1), Pair("first", 1), Pair("x", 1)));
  EXPECT_THAT(Outcomes(), ElementsAre(Pair("dropped", 2), Pair("recorded", 3)));
}

TEST_F(EventQueueTest, AWarningIsDroppedWhereOnlyWarningsWait) {
  door_.Shut();
  Start({.capacity = 1});
  Tell("first");
  ASSERT_TRUE(door_.AwaitArrived(1));
  Tell("x", EventType::kWarning);
  Tell("y", EventType::kWarning);
  door_.Open();
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("first", 1), Pair("x", 1)));
}

TEST_F(EventQueueTest, EventsDoNotYieldWhereItIsHalfFull) {
  Start({.capacity = 4, .yields = [] { return true; }});
  for (const char* message : {"a", "b", "c"}) Tell(message);
  ASSERT_TRUE(door_.AwaitArrived(1));
  queue_->Stop();
}

TEST_F(EventQueueTest, WarningsDoNotYieldAndTheOthersNotForEver) {
  Start({.yields = [] { return true; }, .patience = std::chrono::seconds(10)});
  Tell("calm");
  Tell("urgent", EventType::kWarning);
  ASSERT_TRUE(door_.AwaitArrived(1));
  Tell("urgent too", EventType::kWarning);
  ASSERT_TRUE(door_.AwaitArrived(2));
  EXPECT_FALSE(Stored().contains("calm"));
  clock_.Advance(std::chrono::seconds(10));
  ASSERT_TRUE(door_.AwaitArrived(3));
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("calm", 1), Pair("urgent", 1), Pair("urgent too", 1)));
}

TEST_F(EventQueueTest, EventsAreWrittenWhenWhatIsMoreUrgentIsOver) {
  std::atomic<bool> busy = true;
  std::atomic<int> asked = 0;
  Start({.yields = [&] {
    ++asked;
    return busy.load();
  }});
  Tell("calm");
  while (asked == 0) std::this_thread::yield();
  EXPECT_THAT(Stored(), IsEmpty());
  busy = false;
  ASSERT_TRUE(door_.AwaitArrived(1));
}

TEST_F(EventQueueTest, StopWritesWhatWaitsHoweverUrgentTheRest) {
  Start({.yields = [] { return true; }});
  Tell("a");
  Tell("b");
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("a", 1), Pair("b", 1)));
  Tell("too late");
  EXPECT_THAT(Outcomes(), ElementsAre(Pair("dropped", 1), Pair("recorded", 2)));
}

TEST_F(EventQueueTest, StopDropsWhatItsTimeDoesNotSufficeFor) {
  Start({.yields = [] { return true; }, .drain = Duration(0)});
  Tell("a");
  queue_->Stop();
  EXPECT_THAT(Stored(), IsEmpty());
  EXPECT_THAT(Outcomes(), ElementsAre(Pair("dropped", 1)));
}

TEST_F(EventQueueTest, AnEventThatIsRefusedIsCountedAndTheNextIsWritten) {
  client_.FailNext({.verb = kube::testing::Verb::kCreate, .type = "events"},
                   absl::PermissionDeniedError("no events here"));
  Start({});
  Tell("a");
  ASSERT_TRUE(door_.AwaitArrived(1));
  Tell("b");
  queue_->Stop();
  EXPECT_THAT(Stored(), ElementsAre(Pair("b", 1)));
  EXPECT_THAT(Outcomes(), ElementsAre(Pair("failed", 1), Pair("recorded", 1)));
}

}  // namespace
}  // namespace ringmaster::controller

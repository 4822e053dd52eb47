// What the memory store does beyond the conformance suite: the journal, the clock, hooks, bounds
// and threads.
#include "operator/kube/memory/store.h"

#include <filesystem>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Json Map(const std::string& name) {
  return NewObject(kConfigMap, {"ns", name});
}

Json Pod(const std::string& name, const std::string& node = "") {
  Json pod = NewObject(kPod, {"ns", name});
  pod["spec"]["containers"] = {{{"name", "main"}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  return pod;
}

TEST(StoreTest, TimesComeFromTheInjectedClock) {
  FakeClock clock;
  auto store = *MemoryStore::Open({.clock = &clock});
  EXPECT_EQ((*store->Create(kPod, Pod("a", "node")))["metadata"]["creationTimestamp"],
            "2026-01-01T00:00:00Z");
  clock.Advance(seconds(10));
  ASSERT_TRUE(store->Delete(kPod, {"ns", "a"}, {.grace_period = seconds(60)}).ok());
  EXPECT_EQ((*store->Get(kPod, {"ns", "a"}))["metadata"]["deletionTimestamp"],
            "2026-01-01T00:01:10Z");
  clock.Advance(seconds(5));
  ASSERT_TRUE(store->Delete(kPod, {"ns", "a"}, {.grace_period = seconds(20)}).ok());
  EXPECT_EQ((*store->Get(kPod, {"ns", "a"}))["metadata"]["deletionTimestamp"],
            "2026-01-01T00:00:30Z");
}

Json Event(const std::string& name, const Clock& clock) {
  Json event = NewObject(kEvent, {"ns", name});
  event["lastTimestamp"] = MetaTime(clock.Now());
  return event;
}

TEST(StoreTest, EventsGoAnHourAfterTheyWereLastTold) {
  FakeClock clock;
  auto store = *MemoryStore::Open({.clock = &clock});
  ASSERT_TRUE(store->Create(kEvent, Event("once", clock)).ok());
  ASSERT_TRUE(store->Create(kEvent, Event("again", clock)).ok());
  ASSERT_TRUE(store->Create(kConfigMap, Map("other")).ok());
  clock.Advance(std::chrono::minutes(30));
  ASSERT_TRUE(
      store->Patch(kEvent, {"ns", "again"}, {{"lastTimestamp", MetaTime(clock.Now())}}).ok());
  clock.Advance(std::chrono::minutes(30));
  ASSERT_TRUE(store->Create(kEvent, Event("new", clock)).ok());
  EXPECT_EQ(store->List(kEvent, "ns", {})->items.size(), 2u);
  EXPECT_TRUE(absl::IsNotFound(store->Get(kEvent, {"ns", "once"}).status()));
  EXPECT_TRUE(store->Get(kConfigMap, {"ns", "other"}).ok());
}

TEST(StoreTest, WithASeedIdsAndGeneratedNamesRepeat) {
  Json object = Map("");
  object["metadata"].erase("name");
  object["metadata"]["generateName"] = "x-";
  const auto make = [&](std::uint64_t seed) {
    auto store = *MemoryStore::Open({.seed = seed});
    const Json stored = *store->Create(kConfigMap, object);
    return Name(stored) + Uid(stored);
  };
  EXPECT_EQ(make(7), make(7));
  EXPECT_NE(make(7), make(8));
}

TEST(StoreTest, UidsAreVersion4AndNeverRepeat) {
  auto store = *MemoryStore::Open({.seed = 1});
  std::set<std::string> uids;
  for (int i = 0; i < 500; ++i) {
    const std::string uid = Uid(*store->Create(kConfigMap, Map(fmt::format("c{}", i))));
    ASSERT_EQ(uid.size(), 36u);
    EXPECT_EQ(uid[14], '4');
    uids.insert(uid);
  }
  EXPECT_EQ(uids.size(), 500u);
}

TEST(StoreTest, RefusesAServiceNameThatBeginsWithADigitAsServersBefore136Do) {
  auto store = *MemoryStore::Open({});
  Json service = NewObject(kService, {"ns", "1st"});
  service["spec"] = {{"clusterIP", "None"}, {"ports", {{{"port", 80}}}}};
  EXPECT_EQ(store->Create(kService, service).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StoreTest, ATypeThatIsNotServedIsNotFound) {
  auto store = *MemoryStore::Open({});
  constexpr ResourceType kOther{"apps", "v1", "deployments", "Deployment"};
  EXPECT_EQ(store->Get(kOther, {"ns", "a"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->Watch(kOther, "", {.resource_version = "0"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(StoreTest, AnAdmissionHookSetsDefaultsWithoutRaisingTheGeneration) {
  auto store = *MemoryStore::Open({});
  store->SetAdmission(kTrainingJob, [](AdmissionRequest& request) {
    if (!request.object["spec"].contains("suspend")) request.object["spec"]["suspend"] = false;
    return absl::OkStatus();
  });
  Json job = NewObject(kTrainingJob, {"ns", "a"});
  job["spec"]["x"] = 1;
  const Json stored = *store->Create(kTrainingJob, job);
  EXPECT_EQ(stored["spec"]["suspend"], false);
  job["metadata"]["resourceVersion"] = ResourceVersion(stored);
  const Json again = *store->Update(kTrainingJob, job);
  EXPECT_EQ(ResourceVersion(again), ResourceVersion(stored));
  EXPECT_EQ(Generation(again), 1);
}

TEST(StoreTest, AnAdmissionHookRefusesWithTheObjectNamed) {
  auto store = *MemoryStore::Open({});
  store->SetAdmission(kTrainingJob, [](AdmissionRequest& request) {
    EXPECT_EQ(request.operation == Operation::kCreate, request.current == nullptr);
    return absl::InvalidArgumentError("spec.workers: 0 is too few");
  });
  const auto refused = store->Create(kTrainingJob, NewObject(kTrainingJob, {"ns", "a"}));
  EXPECT_EQ(Message(refused.status()), "TrainingJob \"a\" is invalid: spec.workers: 0 is too few");
  EXPECT_TRUE(store->List(kTrainingJob, "", {})->items.empty());
}

TEST(StoreTest, ANodeNameMayBeSetOnce) {
  auto store = *MemoryStore::Open({});
  ASSERT_TRUE(store->Create(kPod, Pod("a")).ok());
  ASSERT_TRUE(store->Patch(kPod, {"ns", "a"}, {{"spec", {{"nodeName", "here"}}}}).ok());
  EXPECT_EQ(Reason(store->Patch(kPod, {"ns", "a"}, {{"spec", {{"nodeName", "there"}}}}).status()),
            kReasonInvalid);
}

TEST(StoreTest, ASlowWatcherThatFallsBehindTheHistoryExpires) {
  auto store = *MemoryStore::Open({.watch = {.history = 3}});
  const std::string from = store->List(kConfigMap, "", {})->resource_version;
  auto slow = *store->Watch(kConfigMap, "", {.resource_version = from});
  auto other_kind = *store->Watch(kPod, "", {.resource_version = from});
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(store->Create(kConfigMap, Map(fmt::format("c{}", i))).ok());
  EXPECT_EQ(slow->Next(seconds(10)).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(store->Watch(kConfigMap, "", {.resource_version = from}).status().code(),
            absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(store->Create(kPod, Pod("a")).ok());
  EXPECT_TRUE(other_kind->Next(seconds(10)).ok());
}

TEST(StoreTest, BookmarksCarryTheRevisionAndCanBeDeclined) {
  auto store = *MemoryStore::Open({.watch = {.bookmark_every = 5}});
  const std::string from = store->List(kPod, "", {})->resource_version;
  auto with = *store->Watch(kPod, "", {.resource_version = from});
  auto without = *store->Watch(kPod, "", {.resource_version = from, .bookmarks = false});
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(store->Create(kConfigMap, Map(fmt::format("c{}", i))).ok());
  const auto bookmark = with->Next(milliseconds(0));
  ASSERT_TRUE(bookmark.ok()) << bookmark.status();
  EXPECT_EQ(bookmark->type, WatchEventType::kBookmark);
  EXPECT_EQ(ResourceVersion(*bookmark->object), store->List(kPod, "", {})->resource_version);
  EXPECT_EQ(with->Next(milliseconds(0)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(without->Next(milliseconds(0)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(StoreTest, StreamsEndWhenTheStoreGoes) {
  auto store = *MemoryStore::Open({});
  auto stream = *store->Watch(kPod, "", {.resource_version = "0"});
  absl::Status ended;
  std::thread reader([&] { ended = stream->Next(seconds(20)).status(); });
  store.reset();
  reader.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
}

TEST(StoreTest, ATokenNamesItsPodUntilItExpiresOrThePodGoes) {
  FakeClock clock;
  auto store = *MemoryStore::Open({.clock = &clock});
  const Json pod = *store->Create(kPod, Pod("a"));
  const std::string token = *store->IssuePodToken({"ns", "a"}, "rendezvous", seconds(60));
  const auto identity = store->ReviewToken(token, "rendezvous");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(*identity, (PodIdentity{{"ns", "a"}, Uid(pod)}));
  EXPECT_EQ(store->ReviewToken(token, "other").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(store->ReviewToken(token + "0", "rendezvous").status().code(),
            absl::StatusCode::kUnauthenticated);
  clock.Advance(seconds(60));
  EXPECT_EQ(store->ReviewToken(token, "rendezvous").status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(store->IssuePodToken({"ns", "ghost"}, "rendezvous", seconds(60)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(StoreTest, AReplacedPodOfTheSameNameIsNotWhomTheTokenNames) {
  auto store = *MemoryStore::Open({});
  ASSERT_TRUE(store->Create(kPod, Pod("a")).ok());
  const std::string token = *store->IssuePodToken({"ns", "a"}, "rendezvous", seconds(60));
  ASSERT_TRUE(store->Delete(kPod, {"ns", "a"}, {}).ok());
  ASSERT_TRUE(store->Create(kPod, Pod("a")).ok());
  EXPECT_EQ(store->ReviewToken(token, "rendezvous").status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST(StoreThreadsTest, EveryIncrementOfManyWritersCountsAndWatchersSeeThemInOrder) {
  constexpr int kWriters = 4;
  constexpr int kIncrements = 50;
  auto store = *MemoryStore::Open({});
  Json counter = Map("counter");
  counter["data"]["n"] = 0;
  ASSERT_TRUE(store->Create(kConfigMap, counter).ok());
  const std::string from = store->List(kConfigMap, "", {})->resource_version;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&] {
      for (int done = 0; done < kIncrements;) {
        Json object = *store->Get(kConfigMap, {"ns", "counter"});
        object["data"]["n"] = object["data"]["n"].get<int>() + 1;
        if (store->Update(kConfigMap, object).ok()) ++done;
      }
    });
  }
  threads.emplace_back([&] {
    auto stream = *store->Watch(kConfigMap, "", {.resource_version = from, .bookmarks = false});
    for (int n = 1; n <= kWriters * kIncrements; ++n) {
      const auto event = stream->Next(seconds(20));
      ASSERT_TRUE(event.ok()) << event.status();
      EXPECT_EQ((*event->object)["data"]["n"], n);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*store->Get(kConfigMap, {"ns", "counter"}))["data"]["n"], kWriters * kIncrements);
}

}  // namespace
}  // namespace ringmaster::kube::memory

#include "operator/controller/informer.h"

#include <future>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::controller {
namespace {

using kube::Json;
using kube::kConfigMap;
using kube::testing::FaultClient;
using kube::testing::Verb;

class InformerTest : public ::testing::Test {
 protected:
  explicit InformerTest(kube::memory::StoreOptions options = {})
      : store_(*kube::memory::MemoryStore::Open(std::move(options))), client_(*store_) {}

  Json Create(const std::string& name, const std::string& team = "") {
    Json object = kube::NewObject(kConfigMap, {"ns", name});
    if (!team.empty()) kube::SetLabel(object, "team", team);
    return *store_->Create(kConfigMap, object);
  }

  void Delete(const std::string& name) {
    ASSERT_TRUE(store_->Delete(kConfigMap, {"ns", name}, {}).ok());
  }

  // Notes every change as "+a", "~a" or "-a".
  void Note(Informer& informer) {
    informer.AddHandler([this](const ObjectPtr& before, const ObjectPtr& after) {
      const char* sign = before == nullptr ? "+" : after == nullptr ? "-" : "~";
      changes_ += fmt::format("{}{} ", sign, kube::Name(after == nullptr ? *before : *after));
    });
  }

  std::unique_ptr<kube::memory::MemoryStore> store_;
  FaultClient client_;
  std::string changes_;
};

TEST_F(InformerTest, ListsFirstAndThenFollowsTheWatch) {
  Create("a");
  Informer informer(client_, kConfigMap, {});
  Note(informer);
  EXPECT_FALSE(informer.HasSynced());
  EXPECT_EQ(*informer.Pump(), 1);
  EXPECT_TRUE(informer.HasSynced());
  Json b = Create("b");
  kube::SetLabel(b, "x", "y");
  ASSERT_TRUE(store_->Update(kConfigMap, b).ok());
  Delete("a");
  EXPECT_EQ(*informer.Pump(), 4 - 1);
  EXPECT_EQ(changes_, "+a +b ~b -a ");
  EXPECT_EQ(informer.Get({"ns", "a"}), nullptr);
  EXPECT_EQ(kube::Label(*informer.Get({"ns", "b"}), "x"), "y");
  EXPECT_EQ(*informer.Pump(), 0);
}

TEST_F(InformerTest, ListsInPages) {
  for (int i = 0; i < 7; ++i) Create(fmt::format("c{}", i));
  Informer informer(client_, kConfigMap, {.page = 3});
  EXPECT_EQ(*informer.Pump(), 7);
  EXPECT_EQ(informer.Size(), 7u);
}

TEST_F(InformerTest, ATrimmedCopyHasTheRestAndTellsOfItAlike) {
  Informer informer(client_, kConfigMap, {.trim = [](const Json& object) {
                      Json kept = object;
                      kept["metadata"].erase("creationTimestamp");
                      return kept;
                    }});
  informer.AddIndex("team", IndexByLabel("team"));
  Note(informer);
  Json a = Create("a", "red");
  ASSERT_TRUE(informer.Pump().ok());
  kube::SetLabel(a, "team", "blue");
  a["data"] = {{"rate", "0.1"}};
  const Json stored = *store_->Update(kConfigMap, a);
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_TRUE(informer.ByIndex("team", "red").empty());
  const std::vector<ObjectPtr> blue = informer.ByIndex("team", "blue");
  ASSERT_EQ(blue.size(), 1u);
  Json expected = stored;
  expected["metadata"].erase("creationTimestamp");
  EXPECT_EQ(*blue[0], expected);
  EXPECT_EQ(*informer.Get({"ns", "a"}), expected);
  Delete("a");
  Create("b");
  store_->ExpireHistory();
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_EQ(changes_, "+a ~a +b -a ");
}

TEST_F(InformerTest, ATrimmedObjectThatHasChangedIsNotTheEarlierOneThatSomebodyHolds) {
  Informer informer(client_, kConfigMap, {.trim = [](const Json& object) { return object; }});
  Json a = Create("a");
  ASSERT_TRUE(informer.Pump().ok());
  const ObjectPtr held = informer.Get({"ns", "a"});
  EXPECT_EQ(informer.Get({"ns", "a"}), held);
  kube::SetLabel(a, "x", "y");
  ASSERT_TRUE(store_->Update(kConfigMap, a).ok());
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_EQ(kube::Label(*informer.Get({"ns", "a"}), "x"), "y");
  EXPECT_EQ(kube::Label(*held, "x"), std::nullopt);
}

TEST_F(InformerTest, AnExpiredWatchIsMendedByANewListWhoseDifferencesAreChanges) {
  Create("a");
  Create("b");
  Informer informer(client_, kConfigMap, {});
  Note(informer);
  ASSERT_TRUE(informer.Pump().ok());
  changes_.clear();
  Delete("a");
  Create("c");
  store_->ExpireHistory();
  EXPECT_EQ(*informer.Pump(), 2);
  EXPECT_EQ(changes_, "+c -a ");
  Create("d");
  EXPECT_EQ(*informer.Pump(), 1);
}

TEST_F(InformerTest, AWatchThatExpiresRightAfterItsListIsAnErrorAndNoLoop) {
  int lists = 0;
  client_.SetObserver([&](const kube::testing::Call& call) { lists += call.verb == Verb::kList; });
  client_.FailNext({.verb = Verb::kWatch}, absl::OutOfRangeError("too old"), 0, 100);
  Informer informer(client_, kConfigMap, {});
  Note(informer);
  EXPECT_EQ(informer.Pump().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(lists, 1);
  client_.ClearFaults();
  Create("a");
  EXPECT_EQ(*informer.Pump(), 1);
  EXPECT_EQ(changes_, "+a ");
}

TEST_F(InformerTest, AWatchThatCannotBeOpenedIsTriedAgainFromWhereItWas) {
  Informer informer(client_, kConfigMap, {});
  Note(informer);
  client_.FailNext({.verb = Verb::kWatch}, absl::UnavailableError("cut off"));
  EXPECT_EQ(informer.Pump().status().code(), absl::StatusCode::kUnavailable);
  Create("a");
  client_.FailNext({.verb = Verb::kList}, absl::InternalError("no second list is needed"));
  EXPECT_EQ(*informer.Pump(), 1);
  EXPECT_EQ(changes_, "+a ");
}

TEST_F(InformerTest, AWatchThatHasWorkedIsFollowedByTheNextAtOnce) {
  FakeClock clock;
  Informer informer(client_, kConfigMap, {.clock = &clock});
  Note(informer);
  ASSERT_TRUE(informer.Pump().ok());
  Create("a");
  ASSERT_EQ(*informer.Pump(), 1);
  clock.Advance(std::chrono::seconds(1));
  client_.CutWatches();
  Create("b");
  client_.FailNext({.verb = Verb::kList}, absl::InternalError("no second list is needed"));
  EXPECT_EQ(*informer.Pump(), 1);
  client_.CutWatches();
  EXPECT_TRUE(absl::IsUnavailable(informer.Pump().status())) << "it told of b, but was too short";
  ASSERT_TRUE(informer.Pump().ok());
  clock.Advance(std::chrono::seconds(1));
  client_.CutWatches();
  EXPECT_TRUE(absl::IsUnavailable(informer.Pump().status())) << "it has told of nothing";
  ASSERT_TRUE(informer.Pump().ok());
  clock.Advance(std::chrono::seconds(10));
  client_.CutWatches();
  EXPECT_TRUE(informer.Pump().ok()) << "it was open for long";
  EXPECT_EQ(changes_, "+a +b ");
}

TEST_F(InformerTest, AFailedListIsNotASync) {
  client_.FailNext({.verb = Verb::kList}, absl::UnavailableError("cut off"));
  Informer informer(client_, kConfigMap, {});
  EXPECT_FALSE(informer.Pump().ok());
  EXPECT_FALSE(informer.HasSynced());
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_TRUE(informer.HasSynced());
}

TEST_F(InformerTest, IndicesFollowTheLabels) {
  Informer informer(client_, kConfigMap, {});
  informer.AddIndex("team", IndexByLabel("team"));
  Json a = Create("a", "red");
  Create("b", "red");
  Create("c");
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_EQ(informer.ByIndex("team", "red").size(), 2u);
  kube::SetLabel(a, "team", "blue");
  ASSERT_TRUE(store_->Update(kConfigMap, a).ok());
  Delete("b");
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_TRUE(informer.ByIndex("team", "red").empty());
  ASSERT_EQ(informer.ByIndex("team", "blue").size(), 1u);
  EXPECT_EQ(kube::Name(*informer.ByIndex("team", "blue")[0]), "a");
}

TEST_F(InformerTest, OwnersAreFoundByUidAndEnqueuedByName) {
  const Json job =
      *store_->Create(kube::kTrainingJob, kube::NewObject(kube::kTrainingJob, {"ns", "job"}));
  FakeClock clock;
  WorkQueue queue(clock);
  Informer informer(client_, kConfigMap, {});
  informer.AddIndex("owner", IndexByOwnerUid());
  informer.AddHandler(EnqueueController(queue, kube::kTrainingJob));
  Json child = kube::NewObject(kConfigMap, {"ns", "child"});
  kube::AddOwnerReference(child, kube::OwnerReference(kube::kTrainingJob, job));
  ASSERT_TRUE(store_->Create(kConfigMap, child).ok());
  Create("stranger");
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_EQ(informer.ByIndex("owner", kube::Uid(job)).size(), 1u);
  EXPECT_EQ(queue.TryGet(), (ObjectKey{"ns", "job"}));
  EXPECT_EQ(queue.TryGet(), std::nullopt);
}

TEST_F(InformerTest, ChangesThatComeTogetherShareOnePassOfTheirOwner) {
  constexpr std::chrono::milliseconds kGather{50};
  const Json job =
      *store_->Create(kube::kTrainingJob, kube::NewObject(kube::kTrainingJob, {"ns", "job"}));
  FakeClock clock;
  WorkQueue queue(clock);
  Informer informer(client_, kConfigMap, {});
  informer.AddHandler(
      EnqueueController(queue, kube::kTrainingJob, [wait = Duration(kGather)] { return wait; }));
  for (const char* name : {"first", "second"}) {
    Json child = kube::NewObject(kConfigMap, {"ns", name});
    kube::AddOwnerReference(child, kube::OwnerReference(kube::kTrainingJob, job));
    ASSERT_TRUE(store_->Create(kConfigMap, child).ok());
    ASSERT_TRUE(informer.Pump().ok());
    clock.Advance(kGather / 2);
  }
  // Counted from the first, so that a row of changes without a pause puts nothing off.
  EXPECT_EQ(queue.TryGet(), (ObjectKey{"ns", "job"}));
  queue.Done({"ns", "job"});
  clock.Advance(kGather * 10);
  EXPECT_EQ(queue.TryGet(), std::nullopt);
}

TEST_F(InformerTest, AnObjectThatChangesItsLabelConcernsBothKeys) {
  FakeClock clock;
  WorkQueue queue(clock);
  Informer informer(client_, kConfigMap, {});
  Json a = Create("a", "red");
  ASSERT_TRUE(informer.Pump().ok());
  informer.AddHandler(EnqueueByLabel(queue, "team"));
  kube::SetLabel(a, "team", "blue");
  ASSERT_TRUE(store_->Update(kConfigMap, a).ok());
  ASSERT_TRUE(informer.Pump().ok());
  EXPECT_EQ(queue.TryGet(), (ObjectKey{"ns", "red"}));
  EXPECT_EQ(queue.TryGet(), (ObjectKey{"ns", "blue"}));
}

TEST_F(InformerTest, WithAThreadItSyncsAndFollowsUntilStopped) {
  Create("a");
  FakeClock clock;
  WorkQueue queue(SystemClock());
  Informer informer(client_, kConfigMap, {});
  informer.AddHandler(EnqueueSelf(queue));
  informer.Start();
  ASSERT_TRUE(informer.WaitForSync(std::chrono::seconds(20)).ok());
  EXPECT_EQ(queue.Get(), (ObjectKey{"ns", "a"}));
  Create("b");
  EXPECT_EQ(queue.Get(), (ObjectKey{"ns", "b"}));
  informer.Stop();
}

TEST_F(InformerTest, StopEndsTheWaitForASyncThatNeverComes) {
  client_.FailNext({.verb = Verb::kList}, absl::UnavailableError("cut off"), 0, 1000000);
  Informer informer(client_, kConfigMap, {});
  informer.Start();
  EXPECT_EQ(informer.WaitForSync(std::chrono::milliseconds(20)).code(),
            absl::StatusCode::kDeadlineExceeded);
  informer.Stop();
  EXPECT_EQ(informer.WaitForSync(std::chrono::seconds(20)).code(), absl::StatusCode::kCancelled);
}

class BookmarkTest : public InformerTest {
 protected:
  BookmarkTest() : InformerTest({.watch = {.history = 4, .bookmark_every = 3}}) {}
};

TEST_F(BookmarkTest, BookmarksKeepAQuietWatchResumable) {
  int lists = 0;
  client_.SetObserver([&](const kube::testing::Call& call) { lists += call.verb == Verb::kList; });
  FakeClock clock;
  Informer informer(client_, kConfigMap, {.label_selector = "team=red", .clock = &clock});
  ASSERT_TRUE(informer.Pump().ok());
  for (int i = 0; i < 20; ++i) {
    Create(fmt::format("noise{}", i));
    ASSERT_TRUE(informer.Pump().ok());
  }
  clock.Advance(std::chrono::seconds(1));
  client_.CutWatches();
  EXPECT_EQ(*informer.Pump(), 0);
  Create("a", "red");
  EXPECT_EQ(*informer.Pump(), 1);
  EXPECT_EQ(lists, 1);
}

TEST_F(InformerTest, HasNothingOfAKindThatTheServerDoesNotServeUntilItDoes) {
  Create("a");
  client_.FailNext({.verb = Verb::kList}, absl::NotFoundError("no such resource"));
  Informer informer(client_, kConfigMap, {.ask_again = std::chrono::minutes(5)});
  Note(informer);
  EXPECT_EQ(*informer.Pump(), 0);
  EXPECT_TRUE(informer.HasSynced());
  EXPECT_FALSE(informer.Served());
  EXPECT_EQ(*informer.Pump(), 1);
  EXPECT_TRUE(informer.Served());
  EXPECT_EQ(changes_, "+a ");
}

// How often a list must say that the kind is unknown.
constexpr int kSure = 5;

TEST_F(InformerTest, ForgetsWhatItHasOfAKindThatIsServedNoMore) {
  FakeClock clock;
  Create("a");
  Informer informer(client_, kConfigMap,
                    {.ask_again = std::chrono::minutes(5),
                     .sure_after = std::chrono::seconds(5),
                     .clock = &clock});
  Note(informer);
  EXPECT_EQ(*informer.Pump(), 1);
  client_.CutWatches();
  client_.FailNext({.verb = Verb::kWatch}, absl::NotFoundError("no such resource"));
  client_.FailNext({.verb = Verb::kList}, absl::NotFoundError("no such resource"), 0, kSure + 1);
  EXPECT_TRUE(absl::IsUnavailable(informer.Pump().status()));
  for (int i = 1; i < kSure; ++i) {
    EXPECT_TRUE(absl::IsNotFound(informer.Pump().status()));
    EXPECT_TRUE(informer.Served()) << "it is not sure yet";
  }
  clock.Advance(std::chrono::seconds(5));
  EXPECT_EQ(*informer.Pump(), 1);
  EXPECT_FALSE(informer.Served());
  EXPECT_EQ(changes_, "+a -a ");
}

TEST_F(InformerTest, KeepsWhatItHasWhereAKindIsUnknownManyTimesWithinAMoment) {
  FakeClock clock;
  Create("a");
  Informer informer(client_, kConfigMap,
                    {.ask_again = std::chrono::minutes(5),
                     .sure_after = std::chrono::seconds(5),
                     .clock = &clock});
  Note(informer);
  EXPECT_EQ(*informer.Pump(), 1);
  client_.CutWatches();
  EXPECT_TRUE(absl::IsUnavailable(informer.Pump().status()));
  client_.FailNext({.verb = Verb::kWatch}, absl::NotFoundError("no such resource"));
  client_.FailNext({.verb = Verb::kList}, absl::NotFoundError("no such resource"), 0, 4 * kSure);
  for (int i = 0; i < 4 * kSure; ++i) EXPECT_TRUE(absl::IsNotFound(informer.Pump().status()));
  EXPECT_EQ(*informer.Pump(), 0);
  EXPECT_TRUE(informer.Served());
  EXPECT_EQ(changes_, "+a ");
}

TEST_F(InformerTest, KeepsWhatItHasWhereOneOfSeveralServersDoesNotKnowTheKind) {
  Create("a");
  Informer informer(client_, kConfigMap, {.ask_again = std::chrono::minutes(5)});
  Note(informer);
  EXPECT_EQ(*informer.Pump(), 1);
  for (int time = 0; time < 3; ++time) {
    client_.CutWatches();
    EXPECT_TRUE(absl::IsUnavailable(informer.Pump().status()));
    client_.FailNext({.verb = Verb::kWatch}, absl::NotFoundError("no such resource"));
    client_.FailNext({.verb = Verb::kList}, absl::NotFoundError("no such resource"), 0, 2);
    while (!informer.Pump().ok()) EXPECT_TRUE(informer.Served());
    EXPECT_EQ(client_.Pending(), 0);
  }
  EXPECT_TRUE(informer.Served());
  EXPECT_EQ(informer.Size(), 1u);
  EXPECT_EQ(changes_, "+a ");
}

TEST_F(InformerTest, PausesWhereAListIsServedAndItsWatchIsNot) {
  int lists = 0;
  client_.SetObserver([&](const kube::testing::Call& call) { lists += call.verb == Verb::kList; });
  client_.FailNext({.verb = Verb::kWatch}, absl::NotFoundError("no such resource"));
  Informer informer(client_, kConfigMap, {.ask_again = std::chrono::minutes(5)});
  EXPECT_TRUE(absl::IsNotFound(informer.Pump().status())) << "an error is followed by a pause";
  EXPECT_EQ(lists, 1);
  EXPECT_EQ(*informer.Pump(), 0);
  EXPECT_EQ(lists, 2);
  EXPECT_TRUE(informer.Served());
}

TEST_F(InformerTest, PausesEverLongerWhereListsAreServedAndTheirWatchesAreNot) {
  constexpr int kRefused = 6;
  client_.FailNext({.verb = Verb::kWatch}, absl::OutOfRangeError("too old"), 0, kRefused);
  std::promise<void> watches;
  client_.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb == Verb::kWatch && call.status.ok()) watches.set_value();
  });
  Informer informer(client_, kConfigMap, {.backoff = {.initial = std::chrono::milliseconds(5)}});
  const auto start = std::chrono::steady_clock::now();
  informer.Start();
  EXPECT_EQ(watches.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(5 + 10 + 20 + 40 + 80 + 160));
  informer.Stop();
}

TEST_F(InformerTest, AsksAgainByItselfAndSoonForAKindThatWasNotServed) {
  client_.FailNext({.verb = Verb::kList}, absl::NotFoundError("no such resource"), 0, 2);
  Create("a");
  Informer informer(
      client_, kConfigMap,
      {.backoff = {.initial = std::chrono::milliseconds(1)}, .ask_again = std::chrono::hours(1)});
  std::promise<void> seen;
  informer.AddHandler([&](const ObjectPtr&, const ObjectPtr&) { seen.set_value(); });
  informer.Start();
  EXPECT_EQ(seen.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  informer.Stop();
}

TEST_F(InformerTest, AKindThatMustBeServedIsAnErrorWhereItIsNot) {
  client_.FailNext({.verb = Verb::kList}, absl::NotFoundError("no such resource"));
  Informer informer(client_, kConfigMap, {});
  EXPECT_TRUE(absl::IsNotFound(informer.Pump().status()));
  EXPECT_FALSE(informer.HasSynced());
}

}  // namespace
}  // namespace ringmaster::controller

#include "operator/manager/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::manager {
namespace {

using kube::Json;
using kube::testing::Verb;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const kube::ObjectKey kJob{"default", "digits"};

// Writes down what workers are told.
class RecordingLink : public WorkerLink {
 public:
  explicit RecordingLink(std::vector<std::string>& story) : story_(story) {}
  reconcile::WorkersView SnapshotFor(const kube::ObjectKey&) override { return {}; }
  void Announce(const kube::ObjectKey&, const reconcile::Announcement& round) override {
    story_.push_back("announce " + std::to_string(round.round));
  }
  void Send(const kube::ObjectKey&, const std::string& uid,
            const reconcile::WorkerCommand&) override {
    story_.push_back("tell " + uid);
  }
  void LetGo(const kube::ObjectKey&, const std::string& uid) override {
    story_.push_back("let go " + uid);
  }
  void Forget(const kube::ObjectKey&) override {}

 private:
  std::vector<std::string>& story_;
};

// `story_` holds the writes that succeeded and what workers were told, in order.
class ExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_ = store_->Create(kube::kTrainingJob, kube::NewObject(kube::kTrainingJob, kJob)).value();
    client_.SetObserver([this](const kube::testing::Call& call) {
      if (!kube::testing::IsWrite(call.verb) || !call.status.ok()) return;
      const std::string name = call.type == "events" ? "" : " " + call.key.name;
      story_.push_back(std::string(ToString(call.verb)) + " " + call.type + name);
    });
  }

  Json Pod(const std::string& name, bool ours = true) {
    Json pod = kube::NewObject(kube::kPod, {"default", name});
    pod["spec"]["containers"] = Json::array({{{"name", "w"}, {"image", "w"}}});
    if (ours) kube::AddOwnerReference(pod, kube::OwnerReference(kube::kTrainingJob, job_));
    return pod;
  }
  reconcile::Action Create(const std::string& name) { return reconcile::CreatePod{Pod(name)}; }
  static reconcile::Action Event(const std::string& reason, bool tells_of_writes) {
    return reconcile::RecordEvent{
        .tells_of_writes = tells_of_writes, .reason = reason, .message = "m"};
  }
  static reconcile::Decision Round(std::int64_t number) {
    reconcile::Decision decision;
    decision.status.emplace().round = number;
    return decision;
  }
  bool Exists(const std::string& pod) { return store_->Get(kube::kPod, {"default", pod}).ok(); }
  std::vector<std::string> Events() {
    std::vector<std::string> reasons;
    const kube::ObjectList list = store_->List(kube::kEvent, "default", {}).value();
    for (const kube::ObjectPtr& event : list.items) reasons.push_back((*event)["reason"]);
    return reasons;
  }
  absl::Status Execute(const reconcile::Decision& decision) {
    CallMeter meter(clock_);
    return executor_.Execute(job_, decision, meter);
  }

  FakeClock clock_;
  std::vector<std::string> story_;
  std::unique_ptr<kube::memory::MemoryStore> store_ =
      kube::memory::MemoryStore::Open({.clock = &clock_, .seed = 7}).value();
  kube::testing::FaultClient client_{*store_};
  RecordingLink link_{story_};
  controller::EventRecorder recorder_{client_, clock_, "test"};
  OwnWrites own_writes_;
  controller::Informer pods_{client_, kube::kPod, {}};
  MadePods made_pods_{pods_, clock_};
  Rush rush_{clock_};
  Executor executor_{client_, link_, recorder_, own_writes_, made_pods_, rush_, /*parallel=*/1};
  Json job_;
};

TEST_F(ExecutorTest, StoresTellsWritesAndThenRecords) {
  reconcile::Decision decision = Round(1);
  decision.announce = reconcile::Announcement{.round = 1};
  decision.actions = {Event("Told", true), Create("a"), Create("b"),
                      reconcile::SendCommand{"u1", reconcile::CheckpointNowCommand{}}};
  decision.let_go = {"u2"};
  ASSERT_TRUE(Execute(decision).ok());
  EXPECT_THAT(story_, ElementsAre("patch status trainingjobs.training.ringmaster.dev digits",
                                  "announce 1", "tell u1", "let go u2", "create pods a",
                                  "create pods b", "create events"));
}

TEST_F(ExecutorTest, DoesNothingForAStatusThatIsStale) {
  ASSERT_TRUE(
      store_->PatchStatus(kube::kTrainingJob, kJob, {{"round", 5}}, kube::ResourceVersion(job_))
          .ok());
  reconcile::Decision decision = Round(1);
  decision.announce = reconcile::Announcement{.round = 1};
  decision.actions = {Create("a"), Event("Told", false),
                      reconcile::SendCommand{"u1", reconcile::StopCommand{}}};
  decision.let_go = {"u2"};
  EXPECT_TRUE(kube::IsConflict(Execute(decision)));
  EXPECT_THAT(story_, IsEmpty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(ExecutorTest, WritesNoStatusThatIsStoredAlready) {
  ASSERT_TRUE(Execute(Round(1)).ok());
  job_ = store_->Get(kube::kTrainingJob, kJob).value();
  story_.clear();
  reconcile::Decision same = Round(1);
  same.actions = {Create("a")};
  ASSERT_TRUE(Execute(same).ok());
  EXPECT_THAT(story_, ElementsAre("create pods a"));
}

TEST_F(ExecutorTest, ARefusedStatusIsNoFaultOfThePodTemplateAndIsToldByAnEvent) {
  client_.FailNext({.verb = Verb::kPatchStatus},
                   absl::InvalidArgumentError("status.state: Unsupported value"));
  reconcile::Decision decision = Round(1);
  decision.actions = {Create("a"), Event("Told", false)};
  const absl::Status done = Execute(decision);
  EXPECT_TRUE(absl::IsInternal(done)) << done;
  EXPECT_THAT(std::string(done.message()), HasSubstr("status.state: Unsupported value"));
  EXPECT_FALSE(Exists("a"));
  EXPECT_THAT(Events(), ElementsAre("StatusRefused"));
  EXPECT_TRUE(Execute(decision).ok()) << "it is tried again";
  EXPECT_TRUE(Exists("a"));
}

TEST_F(ExecutorTest, RemembersWhatItStoredUntilTheCacheShowsIt) {
  ASSERT_TRUE(Execute(Round(1)).ok());
  const auto stale = std::make_shared<const Json>(job_);
  EXPECT_EQ((*own_writes_.Newest(kJob, stale))["status"]["round"], 1);
}

// A kind that the store serves, in place of a cluster's pod groups.
constexpr kube::ResourceType kGroup = kube::kConfigMap;

TEST_F(ExecutorTest, MakesChangesAndDeletesPodGroups) {
  Json group = kube::NewObject(kGroup, {"default", "g"});
  kube::AddOwnerReference(group, kube::OwnerReference(kube::kTrainingJob, job_));
  reconcile::Decision decision;
  decision.actions = {reconcile::CreatePodGroup{kGroup, group}};
  ASSERT_TRUE(Execute(decision).ok());
  const std::string uid = kube::Uid(store_->Get(kGroup, {"default", "g"}).value());
  const Json patch = {{"metadata", {{"uid", uid}}}, {"data", {{"size", "3"}}}};
  decision.actions = {reconcile::ResizePodGroup{kGroup, "g", patch}};
  ASSERT_TRUE(Execute(decision).ok());
  EXPECT_EQ(store_->Get(kGroup, {"default", "g"}).value()["data"]["size"], "3");
  decision.actions = {reconcile::DeletePodGroup{kGroup, "g", uid}};
  ASSERT_TRUE(Execute(decision).ok());
  EXPECT_TRUE(kube::IsNotFound(store_->Get(kGroup, {"default", "g"}).status()));
  decision.actions = {reconcile::ResizePodGroup{kGroup, "g", patch}};
  EXPECT_TRUE(Execute(decision).ok()) << "one that is gone is made anew by the next pass";
}

TEST_F(ExecutorTest, ARefusedPodGroupIsNoFaultOfThePodTemplate) {
  client_.FailNext({.verb = Verb::kCreate, .type = kGroup.Qualified()},
                   absl::InvalidArgumentError("queue research does not exist"));
  reconcile::Decision decision;
  decision.actions = {reconcile::CreatePodGroup{kGroup, kube::NewObject(kGroup, {"default", "g"})}};
  const absl::Status done = Execute(decision);
  EXPECT_TRUE(absl::IsFailedPrecondition(done)) << done;
  EXPECT_THAT(std::string(done.message()), HasSubstr("queue research does not exist"));
}

TEST_F(ExecutorTest, ARefusedResizeOfAPodGroupIsNoFaultOfThePodTemplateEither) {
  client_.FailNext({.verb = Verb::kPatch, .type = kGroup.Qualified()},
                   absl::InvalidArgumentError("minMember is more than the queue allows"));
  reconcile::Decision decision;
  decision.actions = {reconcile::ResizePodGroup{kGroup, "g", {{"data", {{"size", "3"}}}}}};
  const absl::Status done = Execute(decision);
  EXPECT_TRUE(absl::IsFailedPrecondition(done)) << done;
  EXPECT_THAT(std::string(done.message()), HasSubstr("more than the queue allows"));
  EXPECT_EQ(client_.Pending(), 0);
}

TEST_F(ExecutorTest, ARushIsOnFromTheStatusBeforeThePodsToTheLastPod) {
  std::vector<bool> during;
  client_.SetObserver([&](const kube::testing::Call&) { during.push_back(rush_.IsOn()); });
  reconcile::Decision counts = Round(1);
  ASSERT_TRUE(Execute(counts).ok());
  EXPECT_THAT(during, ElementsAre(false)) << "no pod is created";
  job_ = store_->Get(kube::kTrainingJob, kJob).value();
  during.clear();
  reconcile::Decision decision = Round(2);
  decision.actions = {Create("a"), Create("b")};
  ASSERT_TRUE(Execute(decision).ok());
  EXPECT_THAT(during, ElementsAre(true, true, true));
}

TEST_F(ExecutorTest, TakesItsOwnPodForCreatedWhenOnlyTheAnswerWasLost) {
  client_.FailNext({.verb = Verb::kCreate, .type = "pods"}, absl::UnavailableError("cut off"), 0, 1,
                   kube::testing::Moment::kAfter);
  reconcile::Decision decision;
  decision.actions = {Create("a")};
  EXPECT_TRUE(absl::IsUnavailable(Execute(decision)));
  EXPECT_TRUE(Execute(decision).ok());
  EXPECT_TRUE(Exists("a"));
}

TEST_F(ExecutorTest, RefusesAPodOfItsNameThatBelongsToSomethingElse) {
  ASSERT_TRUE(store_->Create(kube::kPod, Pod("a", /*ours=*/false)).ok());
  reconcile::Decision decision;
  decision.actions = {Create("a")};
  const absl::Status status = Execute(decision);
  EXPECT_TRUE(kube::IsAlreadyExists(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("default/a exists already and belongs"));
}

TEST_F(ExecutorTest, RefusesItsOwnPodThatIsOnItsWayOut) {
  Json pod = Pod("a");
  pod["spec"]["nodeName"] = "node";  // its kubelet has the last word
  ASSERT_TRUE(store_->Create(kube::kPod, pod).ok());
  ASSERT_TRUE(store_->Delete(kube::kPod, {"default", "a"}, {}).ok());
  ASSERT_TRUE(Exists("a"));
  reconcile::Decision decision;
  decision.actions = {Create("a")};
  const absl::Status done = Execute(decision);
  EXPECT_TRUE(absl::IsUnavailable(done)) << done;
  EXPECT_THAT(std::string(done.message()), HasSubstr("is being deleted"));
}

TEST_F(ExecutorTest, DeletesNoOtherPodOfTheSameName) {
  ASSERT_TRUE(store_->Create(kube::kPod, Pod("a")).ok());
  reconcile::Decision decision;
  decision.actions = {reconcile::DeletePod{"a", "uid-of-the-one-before"},
                      reconcile::DeletePod{"gone", "u"}};
  EXPECT_TRUE(Execute(decision).ok()) << "both are no more, and that is what was wanted";
  EXPECT_TRUE(Exists("a"));
}

TEST_F(ExecutorTest, DeletesThePodThatIsMeant) {
  const Json pod = store_->Create(kube::kPod, Pod("a")).value();
  reconcile::Decision decision;
  decision.actions = {reconcile::DeletePod{"a", kube::Uid(pod)}};
  EXPECT_TRUE(Execute(decision).ok());
  EXPECT_FALSE(Exists("a"));
}

TEST_F(ExecutorTest, CountsAnInvalidPodAsTheTemplatesFaultAndNothingElse) {
  const auto refuse_with = [&](Verb verb, const char* reason) {
    client_.FailNext({.verb = verb, .type = "pods"},
                     kube::WithReason(absl::InvalidArgumentError("no"), reason));
  };
  reconcile::Decision decision;
  decision.actions = {Create("a")};
  for (const char* reason : {kube::kReasonInvalid, kube::kReasonBadRequest}) {
    refuse_with(Verb::kCreate, reason);
    EXPECT_TRUE(absl::IsInvalidArgument(Execute(decision))) << reason;
  }
  for (const char* reason : {"MethodNotAllowed", "NotAcceptable", "UnsupportedMediaType"}) {
    refuse_with(Verb::kCreate, reason);
    const absl::Status done = Execute(decision);
    EXPECT_TRUE(absl::IsInternal(done)) << done;
    EXPECT_EQ(kube::Reason(done), reason);
  }
  refuse_with(Verb::kDelete, kube::kReasonBadRequest);
  decision.actions = {reconcile::DeletePod{"a", "uid"}};
  const absl::Status done = Execute(decision);
  EXPECT_TRUE(absl::IsInternal(done)) << done;
  EXPECT_EQ(client_.Pending(), 0);
}

TEST_F(ExecutorTest, SaysThatAPodIsStillThereWhoseDeletionMetAConflict) {
  const Json pod = store_->Create(kube::kPod, Pod("a")).value();
  client_.FailNext({.verb = Verb::kDelete, .type = "pods"},
                   kube::Conflict(kube::kPod, {"default", "a"}, "a webhook says so"));
  reconcile::Decision decision;
  decision.actions = {reconcile::DeletePod{"a", kube::Uid(pod)}};
  EXPECT_TRUE(kube::IsConflict(Execute(decision))) << "or nobody would try again";
  EXPECT_TRUE(Execute(decision).ok());
  EXPECT_FALSE(Exists("a"));
}

TEST_F(ExecutorTest, TriesTheOtherWritesWhenOneFails) {
  client_.FailNext({.verb = Verb::kCreate, .type = "pods", .name = "a"},
                   absl::UnavailableError("cut off"));
  reconcile::Decision decision;
  decision.actions = {Create("a"), Create("b")};
  EXPECT_TRUE(absl::IsUnavailable(Execute(decision)));
  EXPECT_FALSE(Exists("a"));
  EXPECT_TRUE(Exists("b"));
}

TEST_F(ExecutorTest, LeavesOutEventsThatTellOfWritesThatFailed) {
  client_.FailNext({.verb = Verb::kCreate, .type = "pods"}, absl::UnavailableError("cut off"));
  reconcile::Decision decision;
  decision.actions = {Create("a"), Event("PodsCreated", true), Event("RoundStarted", false)};
  EXPECT_FALSE(Execute(decision).ok());
  EXPECT_THAT(Events(), ElementsAre("RoundStarted"));
}

TEST_F(ExecutorTest, DoesNotFailForAnEventThatCannotBeRecorded) {
  client_.FailNext({.verb = Verb::kCreate, .type = "events"}, absl::UnavailableError("cut off"));
  reconcile::Decision decision;
  decision.actions = {Event("RoundStarted", false)};
  EXPECT_TRUE(Execute(decision).ok());
  EXPECT_EQ(client_.Pending(), 0);
}

TEST_F(ExecutorTest, WritesSeveralAtOnceWhenItMay) {
  Executor executor(client_, link_, recorder_, own_writes_, made_pods_, rush_, /*parallel=*/4);
  reconcile::Decision decision;
  for (const char* name : {"a", "b", "c", "d"}) decision.actions.push_back(Create(name));
  client_.SetObserver(nullptr);  // the story has no lock
  CallMeter meter(clock_);
  ASSERT_TRUE(executor.Execute(job_, decision, meter).ok());
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(Exists(name)) << name;
}

}  // namespace
}  // namespace ringmaster::manager

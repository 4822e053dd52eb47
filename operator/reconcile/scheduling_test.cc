#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace reconcile::testing;

// The API of a name; of the native ones that whose groups cannot be changed, unless asked for.
const GangApi& Api(std::string_view name, bool resizable = false) {
  return *std::find_if(kGangApis.begin(), kGangApis.end(), [&](const GangApi& api) {
    return api.name == name && (name != "native" || api.resizable == resizable);
  });
}

Observed CreatedWith(const GangApi& api, int workers) {
  Observed observed = Created(workers);
  observed.gang = &api;
  return observed;
}

template <typename T>
std::vector<T> All(const Decision& decision) {
  std::vector<T> found;
  for (const Action& action : decision.actions) {
    if (const T* one = std::get_if<T>(&action)) found.push_back(*one);
  }
  return found;
}

// After, and the group made as well.
Observed Seen(Observed observed, const Decision& decision) {
  observed = After(observed, decision);
  for (const CreatePodGroup& create : All<CreatePodGroup>(decision)) {
    Json group = create.group;
    group["metadata"]["uid"] = "uid-of-" + kube::Name(group);
    observed.pod_groups.push_back(std::make_shared<const Json>(std::move(group)));
  }
  for (const DeletePodGroup& gone : All<DeletePodGroup>(decision)) {
    std::erase_if(observed.pod_groups,
                  [&](const kube::ObjectPtr& group) { return kube::Uid(*group) == gone.uid; });
  }
  return observed;
}

TEST(SchedulingTest, CreatesNoGroupWhileCreationIsHeld) {
  Observed observed = CreatedWith(Api("native"), 2);
  observed.job.spec.scheduling.gang = true;
  ASSERT_EQ(All<CreatePodGroup>(Reconcile(observed)).size(), 1u);
  observed.creation_held = std::chrono::seconds(1);
  const Decision decision = Reconcile(observed);
  EXPECT_TRUE(All<CreatePodGroup>(decision).empty());
  EXPECT_TRUE(decision.creation_waits);
}

TEST(SchedulingTest, WhatWasRefusedOfPodsIsNotOverBeforeTheirGroupIsSeen) {
  Observed observed = CreatedWith(Api("native"), 2);
  observed.job.spec.scheduling.gang = true;
  const Decision decision = Reconcile(observed);
  EXPECT_TRUE(decision.creation_waits);
  EXPECT_FALSE(Reconcile(Seen(observed, decision)).creation_waits);
}

// With its group and its pods, which are not placed yet.
Observed Waiting(const GangApi& api, int workers) {
  Observed observed = CreatedWith(api, workers);
  observed = Seen(observed, Reconcile(observed));
  return Seen(observed, Reconcile(observed));
}

void Unschedulable(Observed& observed, int index, const std::string& words) {
  Pod(observed, index)["status"]["conditions"] = Json::array({{{"type", "PodScheduled"},
                                                               {"status", "False"},
                                                               {"reason", "Unschedulable"},
                                                               {"message", words}}});
}

std::vector<Json> Pods(const Decision& decision) {
  std::vector<Json> pods;
  for (const CreatePod& create : All<CreatePod>(decision)) pods.push_back(create.pod);
  return pods;
}

TEST(SchedulingTest, SaysAndMakesNothingWhereThereIsNoGangScheduler) {
  const Decision decision = Reconcile(Created(2));
  EXPECT_THAT(All<CreatePodGroup>(decision), IsEmpty());
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-0-0", "digits-1-0"));
  EXPECT_THAT(Events(decision), ElementsAre("PodsCreated"));
}

TEST(SchedulingTest, MakesTheGroupFirstAndThePodsWhenItIsThere) {
  Observed observed = CreatedWith(Api("native"), 2);
  const Decision first = Reconcile(observed);
  EXPECT_THAT(CreatedPods(first), IsEmpty());
  ASSERT_EQ(All<CreatePodGroup>(first).size(), 1u);
  const Json group = All<CreatePodGroup>(first)[0].group;
  EXPECT_EQ(group["apiVersion"], "scheduling.k8s.io/v1alpha2");
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["uid"], "uid-of-job");
  EXPECT_EQ(group["spec"]["schedulingPolicy"]["gang"]["minCount"], 2);
  observed = Seen(observed, first);
  const Decision second = Reconcile(observed);
  EXPECT_THAT(All<CreatePodGroup>(second), IsEmpty());
  EXPECT_THAT(CreatedPods(second), ElementsAre("digits-0-0", "digits-1-0"));
  observed = Seen(observed, second);
  EXPECT_THAT(Pods(Reconcile(observed)), IsEmpty());
}

TEST(SchedulingTest, PodsNameTheGroupAsItsSchedulerWants) {
  for (const GangApi& api : kGangApis) {
    Observed observed = CreatedWith(api, 1);
    observed = Seen(observed, Reconcile(observed));
    const Json pod = Pods(Reconcile(observed)).at(0);
    EXPECT_EQ(GroupNamedIn(pod), "digits-gang-0") << api.name;
    EXPECT_EQ(kube::FindString(pod, {"spec", "schedulerName"}), api.scheduler_name);
  }
}

TEST(SchedulingTest, ATemplatesOwnSchedulerAndThatOfTheSettingsComeBeforeTheUsualOne) {
  Observed observed = CreatedWith(Api("coscheduling"), 1);
  observed = Seen(observed, Reconcile(observed));
  observed.settings.gang_scheduler = "ours";
  EXPECT_EQ(Pods(Reconcile(observed)).at(0)["spec"]["schedulerName"], "ours");
  observed.job.spec.workers.template_ = {{"spec", {{"schedulerName", "mine"}}}};
  EXPECT_EQ(Pods(Reconcile(observed)).at(0)["spec"]["schedulerName"], "mine");
}

TEST(SchedulingTest, QueueAndPriorityGoWhereTheApiHasAPlaceForThem) {
  Observed observed = CreatedWith(Api("volcano"), 3);
  observed.job.spec.scheduling.queue = "research";
  observed.job.spec.scheduling.priority_class_name = "urgent";
  const Decision decision = Reconcile(observed);
  const Json spec = All<CreatePodGroup>(decision).at(0).group["spec"];
  EXPECT_EQ(spec, Json({{"minMember", 3}, {"queue", "research"}, {"priorityClassName", "urgent"}}));
  EXPECT_THAT(Events(decision), Not(Contains("QueueIgnored")));
  observed = Seen(observed, decision);
  EXPECT_EQ(Pods(Reconcile(observed)).at(0)["spec"]["priorityClassName"], "urgent");
}

TEST(SchedulingTest, AJobInAQueueHasAGroupEvenIfItIsNoGang) {
  Observed observed = CreatedWith(Api("volcano"), 3);
  observed.job.spec.scheduling.gang = false;
  EXPECT_THAT(All<CreatePodGroup>(Reconcile(observed)), IsEmpty());
  observed.job.spec.scheduling.queue = "research";
  const Json spec = All<CreatePodGroup>(Reconcile(observed)).at(0).group["spec"];
  EXPECT_EQ(spec, Json({{"minMember", 1}, {"queue", "research"}}));
}

TEST(SchedulingTest, SaysThatAQueueIsNotObeyedBeforeTheFirstPods) {
  Observed observed = Created(1);
  observed.job.spec.scheduling.queue = "research";
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(Events(decision), Contains("QueueIgnored"));
  observed = After(observed, decision);
  EXPECT_THAT(Events(Reconcile(observed)), Not(Contains("QueueIgnored")));
}

TEST(SchedulingTest, LeavesAGroupThatTheTemplateNamesToTheUser) {
  Observed observed = CreatedWith(Api("coscheduling"), 2);
  observed.job.spec.workers.template_ = {
      {"metadata", {{"labels", {{"scheduling.x-k8s.io/pod-group", "mine"}}}}}};
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(All<CreatePodGroup>(decision), IsEmpty());
  EXPECT_EQ(GroupNamedIn(Pods(decision).at(0)), "mine");
  EXPECT_FALSE(Pods(decision).at(0)["spec"].contains("schedulerName"));
}

TEST(SchedulingTest, AReplacedWorkerJoinsTheGroupOfTheOthers) {
  Observed observed = Waiting(Api("native"), 3);
  Exit(observed, 0, 137);
  observed.now += std::chrono::seconds(5);
  observed = Seen(observed, Reconcile(observed));  // the incident
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(All<CreatePodGroup>(decision), IsEmpty());
  EXPECT_THAT(All<DeletePodGroup>(decision), IsEmpty());
  for (const kube::ObjectPtr& pod : observed.pods) {
    EXPECT_EQ(GroupNamedIn(*pod), "digits-gang-0") << kube::Name(*pod);
  }
}

TEST(SchedulingTest, ASuspendedJobHasNoGroupAndStartsAgainWithANewOne) {
  Observed observed = Waiting(Api("native"), 2);
  observed.job.spec.suspend = true;
  const Decision suspended = Reconcile(observed);
  ASSERT_EQ(All<DeletePodGroup>(suspended).size(), 1u);
  EXPECT_EQ(All<DeletePodGroup>(suspended)[0].name, "digits-gang-0");
  // The old pods, and so the old group, are still on their way out.
  observed.job.status = suspended.status;
  for (const int index : {0, 1}) {
    Pod(observed, index)["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  }
  Json going = *observed.pod_groups[0];
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  observed.pod_groups[0] = std::make_shared<const Json>(std::move(going));
  observed.job.spec.suspend = false;
  const Decision resumed = Reconcile(observed);
  EXPECT_EQ(kube::Name(All<CreatePodGroup>(resumed).at(0).group), "digits-gang-1");
  EXPECT_THAT(CreatedPods(resumed), IsEmpty());
  observed = Seen(observed, resumed);
  EXPECT_THAT(CreatedPods(Reconcile(observed)), ElementsAre("digits-0-1", "digits-1-1"));
}

TEST(SchedulingTest, ChangesTheSizeOfAGroupWithTheJobs) {
  for (const GangApi* api : {&Api("native", true), &Api("volcano"), &Api("coscheduling")}) {
    Observed observed = Waiting(*api, 2);
    observed.job.spec.workers.replicas = 3;
    const Decision decision = Reconcile(observed);
    ASSERT_EQ(All<ResizePodGroup>(decision).size(), 1u) << api->name;
    Json group = *observed.pod_groups[0];
    kube::MergePatch(group, All<ResizePodGroup>(decision)[0].patch);
    EXPECT_EQ(MembersOf(*api, group), 3);
    EXPECT_EQ(kube::Uid(group), kube::Uid(*observed.pod_groups[0]));
    EXPECT_EQ(GroupNamedIn(Pods(decision).at(0)), "digits-gang-0");
  }
}

TEST(SchedulingTest, PodsThatAreAddedJoinAGroupThatCannotGrow) {
  Observed observed = Waiting(Api("native"), 2);
  observed.job.spec.workers.replicas = 3;
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(All<ResizePodGroup>(decision), IsEmpty());
  EXPECT_EQ(GroupNamedIn(Pods(decision).at(0)), "digits-gang-0");
}

TEST(SchedulingTest, PodsThatAreReplacedDoNotJoinAGroupThatHasBecomeTooLarge) {
  Observed observed = Waiting(Api("native"), 3);
  observed.job.spec.workers.replicas = 2;
  observed = Seen(observed, Reconcile(observed));
  RemovePod(observed, 1);
  observed.now += std::chrono::seconds(60);
  Decision decision = Reconcile(observed);
  if (Pods(decision).empty()) decision = Reconcile(Seen(observed, decision));
  EXPECT_EQ(GroupNamedIn(Pods(decision).at(0)), "") << "three would have to be there";
}

TEST(SchedulingTest, AStartThatChangedItsSizeWaitsForAGroupThatFits) {
  Observed observed = CreatedWith(Api("native"), 2);
  observed = Seen(observed, Reconcile(observed));
  observed.job.spec.workers.replicas = 3;
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(All<DeletePodGroup>(decision).size(), 1u);
  EXPECT_THAT(CreatedPods(decision), IsEmpty());
  observed = Seen(observed, decision);
  const Json group = All<CreatePodGroup>(Reconcile(observed)).at(0).group;
  EXPECT_EQ(MembersOf(Api("native"), group), 3);
}

TEST(SchedulingTest, MakesAGroupAgainThatPodsHaveJoinedAndSomebodyHasDeleted) {
  Observed observed = Waiting(Api("volcano"), 2);
  observed.pod_groups.clear();
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(kube::Name(All<CreatePodGroup>(decision).at(0).group), "digits-gang-0");
}

TEST(SchedulingTest, AGroupThatIsNotWantedAnyMoreGoes) {
  Observed observed = Waiting(Api("native"), 2);
  observed.job.spec.scheduling.gang = false;
  EXPECT_EQ(All<DeletePodGroup>(Reconcile(observed)).size(), 1u);
}

TEST(SchedulingTest, PodsReadySaysThatTheGangWaitsAndWhy) {
  Observed observed = Waiting(Api("native"), 2);
  Unschedulable(observed, 0, "0/3 nodes are available: 3 Insufficient cpu.");
  Unschedulable(observed, 1, "pod group is unschedulable");
  Json group = *observed.pod_groups[0];
  group["status"]["conditions"] = Json::array({{{"type", "PodGroupScheduled"},
                                                {"status", "False"},
                                                {"message", "pod group is unschedulable"}}});
  observed.pod_groups[0] = std::make_shared<const Json>(std::move(group));
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "PodsReady"), "False Unschedulable");
  EXPECT_THAT(MessageOf(decision, "PodsReady"), StartsWith("The gang of 2 waits. Unschedulable: "));
  EXPECT_THAT(MessageOf(decision, "PodsReady"), HasSubstr("3 Insufficient cpu"));
  Pod(observed, 0)["spec"]["nodeName"] = "node-0";
  EXPECT_THAT(MessageOf(Reconcile(observed), "PodsReady"), Not(HasSubstr("gang")));
}

TEST(SchedulingTest, PodsReadyHasTheGroupsWordsWhereItsPodsSayNothing) {
  Observed observed = Waiting(Api("volcano"), 2);
  Json group = *observed.pod_groups[0];
  group["status"]["conditions"] = Json::array(
      {{{"type", "Unschedulable"}, {"status", "True"}, {"message", "queue research is full"}}});
  observed.pod_groups[0] = std::make_shared<const Json>(std::move(group));
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "PodsReady"), "False Unschedulable");
  EXPECT_THAT(MessageOf(decision, "PodsReady"),
              StartsWith("The gang of 2 waits: queue research is full. "));
}

TEST(SchedulingTest, TheGroupGoesWhenTheJobHasEnded) {
  Observed observed = Waiting(Api("native"), 1);
  observed.problems = {{.path = "spec", .message = "no"}};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(All<DeletePodGroup>(decision).size(), 1u);
}

}  // namespace
}  // namespace ringmaster::reconcile

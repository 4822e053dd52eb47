#include "operator/manager/live_jobs.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/api/salvage.h"
#include "operator/kube/object.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::manager {
namespace {

using kube::Json;

const kube::ObjectKey kJob{"team", "digits"};

Json Job() {
  return Json::parse(R"({"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "digits", "namespace": "team", "uid": "u1", "resourceVersion": "7"},
    "spec": {"workers": {"replicas": 2, "template": {"spec": {"containers": [
      {"name": "w", "command": ["train"]}]}}}},
    "status": {"round": 3}})");
}

kube::ObjectPtr Ptr(Json object) {
  return std::make_shared<const Json>(std::move(object));
}

kube::ObjectPtr Pod(const std::string& name, const std::string& version,
                    const std::string& job = "digits") {
  Json pod = kube::NewObject(kube::kPod, {"team", name});
  pod["metadata"]["resourceVersion"] = version;
  const Json owner = {{"metadata", {{"name", job}, {"uid", "u1"}}}};
  kube::AddOwnerReference(pod, kube::OwnerReference(kube::kTrainingJob, owner));
  return Ptr(std::move(pod));
}

class LiveJobsTest : public ::testing::Test {
 protected:
  // A pass for the job as it is here, which has seen these pods.
  std::shared_ptr<const api::StoredJob> Pass(const kube::ObjectPtr& object,
                                             std::vector<kube::ObjectPtr> pods,
                                             bool is_made = false) {
    auto job = jobs_.Read(object);
    const reconcile::Observed seen{.job = job->job, .pods = std::move(pods)};
    jobs_.Keep(object, job, seen, is_made);
    return job;
  }
  // Whether the next pass would have to decode the job anew.
  bool Known(const kube::ObjectPtr& object, const std::shared_ptr<const api::StoredJob>& read) {
    return jobs_.Read(object) == read;
  }

  LiveJobs jobs_;
  const kube::ObjectPtr object_ = Ptr(Job());
};

TEST_F(LiveJobsTest, GivesAJobThatHasPodsAsTheLastPassReadIt) {
  const auto read = Pass(object_, {Pod("digits-0-0", "1")});
  EXPECT_EQ(read->job.status->round, 3);
  EXPECT_TRUE(Known(object_, read));
  EXPECT_TRUE(Known(Ptr(Job()), read)) << "another copy that says the same";
}

TEST_F(LiveJobsTest, ReadsAnewWhatSaysAnythingElse) {
  const auto read = Pass(object_, {Pod("digits-0-0", "1")});
  Json round = Job();
  round["metadata"]["resourceVersion"] = "8";
  round["status"]["round"] = 4;
  EXPECT_EQ(jobs_.Read(Ptr(round))->job.status->round, 4);
  Json wider = Job();
  wider["spec"]["workers"]["replicas"] = 5;  // the same resourceVersion: nothing relies on that
  EXPECT_EQ(jobs_.Read(Ptr(wider))->job.spec.workers.replicas, 5);
  EXPECT_EQ(jobs_.Read(Ptr(wider))->job.spec.workers.max_replicas, 5);
  Json deleted = Job();
  deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(jobs_.Read(Ptr(deleted))->job.metadata.contains("deletionTimestamp"));
  Json next = Job();
  next["metadata"]["uid"] = "u2";
  next.erase("status");
  EXPECT_FALSE(jobs_.Read(Ptr(next))->job.status.has_value()) << "another job under its name";
  Json wrong = Job();
  wrong["spec"]["surprise"] = 1;
  EXPECT_EQ(jobs_.Read(Ptr(wrong))->problems.size(), 1u);
}

TEST_F(LiveJobsTest, KeepsAJobWhosePodsAreMadeAndNotSeenYet) {
  EXPECT_TRUE(Known(object_, Pass(object_, {}, /*is_made=*/true)));
}

TEST_F(LiveJobsTest, KeepsNothingOfAJobWithoutPods) {
  const auto read = Pass(object_, {Pod("digits-0-0", "1")});
  Pass(object_, {});
  EXPECT_FALSE(Known(object_, read));
}

TEST_F(LiveJobsTest, KeepsNothingOfAJobThatIsOver) {
  Json over = Job();
  over["status"]["conditions"] = {{{"type", reconcile::kConditionSucceeded},
                                   {"status", "True"},
                                   {"reason", "Completed"},
                                   {"message", ""},
                                   {"lastTransitionTime", "2026-01-01T00:00:00Z"}}};
  const kube::ObjectPtr object = Ptr(over);
  kube::ObjectPtr pod = Pod("digits-0-0", "1");
  const std::weak_ptr<const Json> held = pod;
  const auto read = Pass(object, {std::exchange(pod, nullptr)});
  ASSERT_TRUE(read->problems.empty()) << schema::FormatProblems(read->problems);
  EXPECT_FALSE(Known(object, read));
  EXPECT_TRUE(held.expired());
}

TEST_F(LiveJobsTest, ForgetsAJobThatIsGone) {
  const auto read = Pass(object_, {Pod("digits-0-0", "1")});
  jobs_.Forget(kJob);
  EXPECT_FALSE(Known(object_, read));
}

TEST_F(LiveJobsTest, HoldsThePodsOfTheLastPassOnly) {
  kube::ObjectPtr first = Pod("digits-0-0", "1");
  kube::ObjectPtr second = Pod("digits-0-1", "2");
  const std::weak_ptr<const Json> held[] = {first, second};
  Pass(object_, {std::exchange(first, nullptr)});
  EXPECT_FALSE(held[0].expired());
  Pass(object_, {std::exchange(second, nullptr)});
  EXPECT_TRUE(held[0].expired());
  EXPECT_FALSE(held[1].expired());
}

TEST_F(LiveJobsTest, HoldsAPodAsItsCacheShowsItNowAndNoOtherJobs) {
  kube::ObjectPtr first = Pod("digits-0-0", "1");
  const std::weak_ptr<const Json> before = first;
  Pass(object_, {std::exchange(first, nullptr)});
  kube::ObjectPtr changed = Pod("digits-0-0", "2");
  kube::ObjectPtr another = Pod("digits-1-0", "3");
  kube::ObjectPtr strange = Pod("other-0-0", "4", "other");
  const std::weak_ptr<const Json> held[] = {changed, another, strange};
  jobs_.Saw(std::exchange(changed, nullptr));
  jobs_.Saw(std::exchange(another, nullptr));
  jobs_.Saw(std::exchange(strange, nullptr));
  EXPECT_TRUE(before.expired());
  EXPECT_FALSE(held[0].expired());
  EXPECT_FALSE(held[1].expired());
  EXPECT_TRUE(held[2].expired());
}

}  // namespace
}  // namespace ringmaster::manager

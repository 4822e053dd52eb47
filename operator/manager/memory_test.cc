// What the operator keeps of jobs that are over: a cluster has thousands of them.
#include <algorithm>
#include <malloc.h>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "operator/manager/manager.h"

namespace ringmaster::manager {
namespace {

using kube::Json;

constexpr int kJobs = 1000;
constexpr std::size_t kBytesPerJob = 5000;

// As an API server gives them, who wrote which field included.
constexpr char kJob[] = R"({
  "metadata": {"namespace": "team", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
    "managedFields": [{"manager": "kubectl", "operation": "Apply", "apiVersion": "training.ringmaster.dev/v1alpha1",
      "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:trainer": {"f:epochs": {}}}}}]},
  "spec": {"workers": {"replicas": 1},
    "trainer": {"model": {"zoo": {"name": "lenet-bn"}}, "optimizer": {"sgd": {"learningRate": 0.05}},
      "batch": {"size": 64, "shards": 8}, "epochs": 20, "seed": 7,
      "data": {"csv": {"path": "digits.csv", "classes": 10, "shape": [1, 8, 8], "scale": 16}}}},
  "status": {"state": "Succeeded", "round": 1, "shards": 8, "goodput": 1, "observedGeneration": 1,
    "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:10:00Z",
    "kernelsDigest": "5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c",
    "incarnations": [{"index": 0, "incarnation": 0}],
    "workers": {"desired": 1, "active": 0, "ready": 0, "failed": 0, "succeeded": 1, "summary": "0/1"},
    "checkpoints": [{"step": 448, "round": 1, "worldSize": 1, "time": "2026-01-01T00:10:00Z",
      "digest": "5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c"}],
    "progress": {"step": 448, "totalSteps": 448, "epoch": 20, "loss": 0.081, "accuracy": 0.978,
      "samplesPerSecond": 9410, "lastCheckpointStep": 448, "summary": "448/448", "updatedAt": "2026-01-01T00:10:00Z"},
    "result": {"weightsSha256": "5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c",
      "steps": 448, "accuracy": 0.978, "loss": 0.081},
    "conditions": [
      {"type": "PodsReady", "status": "False", "reason": "Completed", "message": "The job has ended.",
       "lastTransitionTime": "2026-01-01T00:10:00Z", "observedGeneration": 1},
      {"type": "Training", "status": "False", "reason": "Completed", "message": "The job has ended.",
       "lastTransitionTime": "2026-01-01T00:10:00Z", "observedGeneration": 1},
      {"type": "Succeeded", "status": "True", "reason": "Completed", "message": "448 steps, accuracy 97.8 %.",
       "lastTransitionTime": "2026-01-01T00:10:00Z", "observedGeneration": 1}]}})";

constexpr char kPod[] = R"({
  "metadata": {"namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"training.ringmaster.dev/index": "0", "training.ringmaster.dev/incarnation": "0"},
    "ownerReferences": [{"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob",
      "controller": true, "blockOwnerDeletion": true}]},
  "spec": {"nodeName": "node-7", "restartPolicy": "Never", "containers": [{"name": "worker",
    "image": "ringmaster/worker:0.1", "env": [{"name": "RINGMASTER_JOB", "value": "a"}]}]},
  "status": {"phase": "Succeeded", "podIP": "10.0.0.7", "qosClass": "BestEffort",
    "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted", "lastProbeTime": null,
      "lastTransitionTime": "2026-01-01T00:10:00Z"}],
    "containerStatuses": [{"name": "worker", "image": "ringmaster/worker:0.1", "ready": false, "restartCount": 0,
      "imageID": "sha256:5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c5f1c",
      "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:10:00Z"}}}]}})";

// An API server with kJobs jobs that are over, each with its pod, made as they are asked for.
class FinishedJobs : public kube::Client {
 public:
  absl::StatusOr<kube::ObjectList> List(const kube::ResourceType& type, std::string_view,
                                        const kube::ListOptions& options) override {
    kube::ObjectList list;
    list.resource_version = std::to_string(kJobs);
    if (type != kube::kTrainingJob && type != kube::kPod) return list;
    const int from = options.continue_token.empty() ? 0 : std::stoi(options.continue_token);
    const int end = std::min(kJobs, from + static_cast<int>(options.limit));
    for (int i = from; i < end; ++i) list.items.push_back(type == kube::kPod ? Pod(i) : Job(i));
    if (end < kJobs) list.continue_token = std::to_string(end);
    return list;
  }
  absl::StatusOr<std::unique_ptr<kube::WatchStream>> Watch(const kube::ResourceType&,
                                                           std::string_view,
                                                           const kube::WatchOptions&) override {
    return std::make_unique<Silence>();
  }
  absl::StatusOr<Json> PatchStatus(const kube::ResourceType&, const kube::ObjectKey& key,
                                   const Json& status, std::string_view) override {
    ADD_FAILURE() << "a job that is over was written to: " << key.ToString() << ": " << status;
    return Refusal();
  }
  absl::StatusOr<Json> Get(const kube::ResourceType&, const kube::ObjectKey&) override {
    return Refusal();
  }
  absl::StatusOr<Json> Create(const kube::ResourceType&, const Json&) override { return Refusal(); }
  absl::StatusOr<Json> Update(const kube::ResourceType&, const Json&) override { return Refusal(); }
  absl::StatusOr<Json> Patch(const kube::ResourceType&, const kube::ObjectKey&,
                             const Json&) override {
    return Refusal();
  }
  absl::StatusOr<Json> Apply(const kube::ResourceType&, const Json&,
                             const kube::ApplyOptions&) override {
    return Refusal();
  }
  absl::Status Delete(const kube::ResourceType&, const kube::ObjectKey&,
                      const kube::DeleteOptions&) override {
    return Refusal();
  }

 private:
  class Silence : public kube::WatchStream {
   public:
    absl::StatusOr<kube::WatchEvent> Next(std::chrono::milliseconds) override {
      return absl::DeadlineExceededError("nothing happens");
    }
    void Stop() override {}
  };

  static absl::Status Refusal() { return absl::UnimplementedError("only read from"); }
  static std::string Name(int i) { return fmt::format("digits-of-{:05}", i); }
  static std::string UidOf(int i, int kind) {
    return fmt::format("{:08x}-0000-4000-8000-{:012x}", kind, i);
  }
  static Json Identified(const char* text, const kube::ResourceType& type, int i, int kind) {
    Json object = Json::parse(text);
    object["apiVersion"] = type.ApiVersion();
    object["kind"] = type.kind;
    object["metadata"]["uid"] = UidOf(i, kind);
    object["metadata"]["resourceVersion"] = std::to_string(i + 1);
    return object;
  }
  static kube::ObjectPtr Job(int i) {
    Json job = Identified(kJob, kube::kTrainingJob, i, 1);
    job["metadata"]["name"] = Name(i);
    job["status"]["selector"] = "training.ringmaster.dev/job=" + Name(i);
    job["status"]["members"] = {{{"rank", 0},
                                 {"pod", Name(i) + "-0-0"},
                                 {"podUID", UidOf(i, 2)},
                                 {"address", "10.0.0.7:7473"}}};
    return std::make_shared<const Json>(std::move(job));
  }
  static kube::ObjectPtr Pod(int i) {
    Json pod = Identified(kPod, kube::kPod, i, 2);
    pod["metadata"]["name"] = Name(i) + "-0-0";
    pod["metadata"]["labels"]["training.ringmaster.dev/job"] = Name(i);
    pod["metadata"]["ownerReferences"][0]["name"] = Name(i);
    pod["metadata"]["ownerReferences"][0]["uid"] = UidOf(i, 1);
    return std::make_shared<const Json>(std::move(pod));
  }
};

class NoWorkers : public WorkerLink {
 public:
  reconcile::WorkersView SnapshotFor(const kube::ObjectKey&) override { return {}; }
  void Announce(const kube::ObjectKey&, const reconcile::Announcement&) override {}
  void Send(const kube::ObjectKey&, const std::string&, const reconcile::WorkerCommand&) override {}
  void LetGo(const kube::ObjectKey&, const std::string&) override {}
  void Forget(const kube::ObjectKey&) override {}
};

std::size_t BytesInUse() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(ManagerMemoryTest, AFinishedJobAndItsPodTakeFewKilobytes) {
  if (BytesInUse() == 0) GTEST_SKIP() << "the allocator is a sanitizer's, which does not count";
  FinishedJobs client;
  NoWorkers link;
  FakeClock clock;
  Manager manager({.small_caches = true}, client, link, clock);
  const std::size_t before = BytesInUse();
  const absl::StatusOr<int> passes = manager.RunUntilIdle(2 * kJobs);
  const std::size_t after = BytesInUse();
  ASSERT_TRUE(passes.ok()) << passes.status();
  EXPECT_EQ(*passes, kJobs);
  EXPECT_EQ(manager.jobs().Size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(manager.pods().Size(), static_cast<std::size_t>(kJobs));
  RecordProperty("bytes_per_job", static_cast<int>((after - before) / kJobs));
  EXPECT_LT((after - before) / kJobs, kBytesPerJob);
}

}  // namespace
}  // namespace ringmaster::manager

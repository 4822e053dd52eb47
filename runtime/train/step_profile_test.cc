// Where the time of a job's steps goes: what is counted, and what is written.
#include "runtime/train/step_profile.h"

#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/train/job_profile.h"
#include "runtime/train/lone_worker.h"
#include "runtime/train/step_trace.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using ::testing::HasSubstr;
using training::v1alpha1::BatchNormOver;

constexpr int64_t kShards = 8;  // of 3 and of 4 of the batch's 26 samples

TEST(WantsAnotherStepTest, TakesAFewEvenWhereTheTimeIsUpButNoMoreThanIsBearable) {
  EXPECT_TRUE(WantsAnotherStep(1, 1000, 0));
  EXPECT_TRUE(WantsAnotherStep(4, 19, 0));
  EXPECT_FALSE(WantsAnotherStep(4, 21, 0));
  EXPECT_FALSE(WantsAnotherStep(5, 0.1, 0));
  EXPECT_TRUE(WantsAnotherStep(5, 0.1, 1));
}

class StepProfileTest : public ::testing::Test {
 protected:
  training::v1alpha1::TrainerConfig& trainer() { return job_.config.trainer; }

  const Workload& Load() {
    workload_ =
        std::make_unique<Workload>(Workload::Load(trainer(), job_.options.workspace).value());
    EXPECT_TRUE(workload_->CheckModel(job_.options.kernels).ok());
    return *workload_;
  }

  // Behind its first step.
  LoneWorker& Start() {
    worker_ = LoneWorker::Create(Load(), job_.options.kernels).value();
    EXPECT_TRUE(worker_->Step().ok());
    return *worker_;
  }

  // By node, whatever the kernel: the calls of each in a step.
  static std::map<std::string, int64_t> CallsOf(const StepProfile& profile) {
    std::map<std::string, int64_t> calls;
    for (const graph::OpProfile& op : profile.ops) calls[op.node] += op.calls;
    for (auto& [node, count] : calls) {
      EXPECT_EQ(count % profile.steps, 0) << node;
      count /= profile.steps;
    }
    return calls;
  }

  testing::DigitsJob job_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<LoneWorker> worker_;
};

TEST_F(StepProfileTest, CountsTheOpsOfAllShardsWhateverTheirSize) {
  const auto profile = TakeProfile(Start(), 0);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->steps, 5);
  for (const auto& [node, calls] : CallsOf(*profile)) EXPECT_EQ(calls, kShards) << node;
  double ops = 0;
  for (const graph::OpProfile& op : profile->ops) ops += profile->SecondsOf(op);
  EXPECT_GT(ops, 0);
  EXPECT_NEAR(ops + profile->SecondsBesideOps(), profile->times.compute_seconds, 1e-9);
}

TEST_F(StepProfileTest, CountsTheOpsOfShardsThatAreComputedTogether) {
  trainer().model.batch_norm = BatchNormOver::kSynchronised;
  const auto profile = TakeProfile(Start(), 0);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto calls = CallsOf(*profile);
  EXPECT_EQ(calls.at("conv1"), kShards);
  EXPECT_EQ(calls.at("grad/conv1/weight"), kShards);
  for (const graph::OpProfile& op : profile->ops)
    EXPECT_NE(op.op, "sum_over_shards") << "the worker adds them up";
}

TEST_F(StepProfileTest, TheTableHasForwardThenBackwardWithWhatTakesLongestFirst) {
  const StepProfile profile{
      .steps = 2,
      .times = {.compute_seconds = 0.008, .reduce_seconds = 0.0005, .commit_seconds = 0.0015},
      .ops = {
          {"fc", "linear", "vector/avx2", false, 8, std::chrono::milliseconds(2)},
          {"act", "relu", "reference", false, 8, std::chrono::milliseconds(4)},
          {"grad/fc/weight", "matmul", "onednn/brgemm", true, 8, std::chrono::milliseconds(6)}}};
  EXPECT_EQ(Table(profile),
            "      time    share  calls  op      node            kernel\n"
            "forward\n"
            "   2.00 ms   20.0 %      4  relu    act             reference\n"
            "   1.00 ms   10.0 %      4  linear  fc              vector/avx2\n"
            "   3.00 ms   30.0 %         all of it\n"
            "backward\n"
            "   3.00 ms   30.0 %      4  matmul  grad/fc/weight  onednn/brgemm\n"
            "   3.00 ms   30.0 %         all of it\n"
            "beside the ops\n"
            "   2.00 ms   20.0 %         (samples, executor)\n"
            "  500.0 µs    5.0 %         (sum over workers)\n"
            "   1.50 ms   15.0 %         (optimizer)\n");
}

TEST_F(StepProfileTest, ATraceHasEveryCallOfItsSteps) {
  const std::filesystem::path file = job_.workspace() / "made" / "step.json";
  LoneWorker& worker = Start();
  ASSERT_TRUE(WriteTrace(worker, {.file = file, .title = "digits", .steps = 2}).ok());
  EXPECT_EQ(worker.replica().step(), 3u);
  std::map<int, std::string> tracks;
  std::map<std::string, int> events;
  for (const nlohmann::json& event : nlohmann::json::parse(ReadFile(file).value())) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X")
      ++events[tracks.at(event["tid"]) + ": " + event["name"].get<std::string>()];
  }
  EXPECT_EQ(events["step: commit"], 2);
  EXPECT_EQ(events["forward: conv1"], 2 * kShards);
  EXPECT_EQ(events["backward: grad/conv1/weight"], 2 * kShards);
}

TEST_F(StepProfileTest, AJobsProfileSaysWhatItIsOf) {
  const std::filesystem::path folder = job_.workspace() / "a" / "profile";
  const absl::Status written = ProfileSteps(Load(), job_.options.kernels, folder);
  ASSERT_TRUE(written.ok()) << written;
  const std::string text = ReadFile(folder / "profile.txt").value();
  EXPECT_THAT(text, ::testing::StartsWith("lenet-bn, "));
  EXPECT_THAT(text, HasSubstr(" parameters: batch 26 in 8 shards, 1 thread\na step of one worker "
                              "takes "));
  EXPECT_THAT(text, HasSubstr("\nbackward\n"));
  EXPECT_TRUE(nlohmann::json::accept(ReadFile(folder / "trace.json").value()));
  EXPECT_FALSE(ProfileSteps(Load(), job_.options.kernels, job_.data() / "below").ok());
}

TEST_F(StepProfileTest, AStepWhoseLossIsNoNumberEndsIt) {
  trainer().optimizer.sgd->learning_rate = std::numeric_limits<float>::max();
  worker_ = LoneWorker::Create(Load(), job_.options.kernels).value();
  absl::Status stepped;
  for (int step = 0; step < 10 && stepped.ok(); ++step) stepped = worker_->Step();
  EXPECT_EQ(stepped.code(), absl::StatusCode::kDataLoss) << stepped;
  EXPECT_THAT(Message(stepped), HasSubstr("nothing can be measured"));
  EXPECT_EQ(TakeProfile(*worker_, 0).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ringmaster::train

// How gradients travel: every method of spec.trainer.gradients trains, those that promise the same
// bits at every world size keep them, and where buckets end changes none.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using testing::Cluster;
using testing::DigitsJob;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using training::v1alpha1::Gradients;

constexpr int64_t kSmallBucket = 16 * 1024;  // lenet-bn has several of them

struct Trained {
  Finished finished;
  double first_loss = 0;
  std::map<std::string, double> metrics;  // of worker 0, without ringmaster_trainer_
};

// A counter's or gauge's value in a text of metrics.
double ValueOf(const std::string& text, const std::string& series) {
  const std::string line = "\nringmaster_trainer_" + series + " ";
  const size_t at = text.find(line);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
}

Trained Train(const DigitsJob& job, int world) {
  std::filesystem::remove_all(job.checkpoints());
  Cluster cluster(job.config, job.options);
  cluster.Start(world);
  cluster.Announce();
  Trained trained{.finished = cluster.WaitUntilFinished()};
  for (const Progress& progress : cluster.EventsOf<Progress>(0)) {
    if (progress.step == 1) trained.first_loss = progress.loss;
  }
  const std::string text = cluster.MetricsOf(0);
  for (const char* name :
       {"allreduce_bytes_total{direction=\"sent\"}",
        "allreduce_bytes_total{direction=\"received\"}", "allreduce_saved_bytes_total"}) {
    trained.metrics[name] = ValueOf(text, name);
  }
  return trained;
}

double Sent(const Trained& trained) {
  return trained.metrics.at("allreduce_bytes_total{direction=\"sent\"}");
}

struct Method {
  const char* name;
  void (*set)(Gradients& gradients);
  bool same_bits = true;
  double bytes = 0;  // sent at two workers, against those of 32-bit floats
};

const Method kMethods[] = {
    {"BF16", [](Gradients& g) { g.bf16.emplace(); }, true, 0.5},
    {"F16", [](Gradients& g) { g.f16.emplace(); }, true, 0.5},
    {"TopK", [](Gradients& g) { g.top_k.emplace().share = 0.05; }, false, 0.1},
    {"OneBit", [](Gradients& g) { g.one_bit.emplace(); }, false, 0.035},
    {"Adasum", [](Gradients& g) { g.adasum.emplace(); }, true, 1},
};

class GradientsTest : public ::testing::TestWithParam<Method> {
 protected:
  GradientsTest() {
    job_.config.trainer.steps = 40;
    GetParam().set(job_.config.trainer.gradients);
  }
  DigitsJob job_;
};

INSTANTIATE_TEST_SUITE_P(Methods, GradientsTest, ::testing::ValuesIn(kMethods),
                         [](const auto& info) { return info.param.name; });

TEST_P(GradientsTest, LetTheLossFall) {
  const Trained trained = Train(job_, 2);
  EXPECT_EQ(trained.finished.steps, 40);
  EXPECT_LT(trained.finished.loss, 0.6 * trained.first_loss);
  EXPECT_GT(trained.finished.evaluation->accuracy, 0.6);
}

TEST_P(GradientsTest, TrainTheSameWeightsAtEveryWorldSizeWhereTheyPromiseIt) {
  job_.config.trainer.steps = 8;
  const std::string alone = Train(job_, 1).finished.weights_sha256;
  if (!GetParam().same_bits) {
    EXPECT_NE(Train(job_, 2).finished.weights_sha256, alone) << "the residuals are the workers'";
    EXPECT_EQ(Train(job_, 2).finished.weights_sha256, Train(job_, 2).finished.weights_sha256);
    return;
  }
  for (const int world : {2, 3, 4})
    EXPECT_EQ(Train(job_, world).finished.weights_sha256, alone) << world << " workers";
  job_.config.trainer.gradients = Gradients();
  EXPECT_NE(Train(job_, 2).finished.weights_sha256, alone) << "the method changes nothing";
}

TEST_P(GradientsTest, KeepTheBitsWhateverTheBucketsSize) {
  job_.config.trainer.steps = 8;
  const std::string whole = Train(job_, 3).finished.weights_sha256;
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, kSmallBucket, 5 * kSmallBucket}) {
    job_.config.trainer.gradients.bucket_bytes = bytes;
    EXPECT_EQ(Train(job_, 3).finished.weights_sha256, whole) << bytes << " bytes";
  }
}

TEST_P(GradientsTest, SendWhatTheyShould) {
  job_.config.trainer.steps = 8;
  const Trained small = Train(job_, 2);
  job_.config.trainer.gradients = Gradients();
  const Trained plain = Train(job_, 2);
  EXPECT_NEAR(Sent(small) / Sent(plain), GetParam().bytes, 0.02);
  EXPECT_NEAR(small.metrics.at("allreduce_saved_bytes_total"), Sent(plain) - Sent(small),
              0.01 * Sent(plain));
  EXPECT_EQ(plain.metrics.at("allreduce_saved_bytes_total"), 0);
}

TEST_P(GradientsTest, TrainWithoutShardsToo) {
  job_.config.trainer.batch.shards = 0;
  EXPECT_GT(Train(job_, 3).finished.evaluation->accuracy, 0.6);
}

TEST(BucketsTest, KeepTheBitsOf32BitFloatsToo) {
  DigitsJob job;
  const std::string whole = Train(job, 1).finished.weights_sha256;
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, kSmallBucket}) {
    job.config.trainer.gradients.bucket_bytes = bytes;
    for (const int world : {1, 3})
      EXPECT_EQ(Train(job, world).finished.weights_sha256, whole)
          << bytes << " bytes, " << world << " workers";
  }
}

TEST(BucketsTest, KeepTheBitsOfAWorkerThatIsAloneWithOneShard) {
  DigitsJob job;
  for (const int shards : {0, 1}) {
    job.config.trainer.batch.shards = shards;
    job.config.trainer.gradients.bucket_bytes = 0;
    const std::string whole = Train(job, 1).finished.weights_sha256;
    job.config.trainer.gradients.bucket_bytes = kSmallBucket;
    EXPECT_EQ(Train(job, 1).finished.weights_sha256, whole) << shards << " shards";
  }
}

struct Phase {
  std::string track, name;
  double begin, end;
};

// Of a timeline, in the order of the file.
std::vector<Phase> Read(const std::filesystem::path& path) {
  std::map<int, std::string> tracks;
  std::vector<Phase> phases;
  for (const auto& event : nlohmann::json::parse(ReadFile(path).value())) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], duration = event["dur"];
    phases.push_back({tracks[event["tid"]], event["name"], begin, begin + duration});
  }
  return phases;
}

// What phases each track of a timeline has.
std::map<std::string, std::set<std::string>> PhasesOf(const std::filesystem::path& path) {
  std::map<std::string, std::set<std::string>> phases;
  for (const Phase& phase : Read(path)) phases[phase.track].insert(phase.name);
  return phases;
}

class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() {
    job_.config.trainer.gradients.bucket_bytes = kSmallBucket;
    job_.config.trainer.gradients.timeline = true;
  }

  std::filesystem::path FileOf(const char* worker) {
    return job_.checkpoints() / "timeline" / worker;
  }

  DigitsJob job_;
};

TEST_F(TimelineTest, ShowsWhatBecameOfEachBucket) {
  Train(job_, 2);
  for (const char* worker : {"0.json", "1.json"}) {
    const auto phases = PhasesOf(FileOf(worker));
    EXPECT_GT(phases.size(), 5U);
    for (const auto& [track, names] : phases) {
      if (track == "step") {
        EXPECT_THAT(names, UnorderedElementsAre("compute", "forward and backward",
                                                "wait for gradients", "commit"));
      } else {
        EXPECT_THAT(names, IsSupersetOf({"fuse", "wait", "reduce", "ordered_sum"})) << track;
      }
    }
  }
}

// The tracks of buckets, in the order in which their sums began in the file's first step.
std::vector<std::string> BucketsAsSummed(const std::filesystem::path& path) {
  std::map<double, std::string> order;
  std::set<std::string> seen;
  for (const Phase& phase : Read(path)) {
    if (phase.name == "reduce" && seen.insert(phase.track).second) order[phase.begin] = phase.track;
  }
  std::vector<std::string> names;
  for (const auto& [when, name] : order) names.push_back(name);
  return names;
}

TEST_F(TimelineTest, ShowsThatBucketsAreSummedFromTheLastLayerToTheFirst) {
  Train(job_, 2);
  const auto buckets = BucketsAsSummed(FileOf("0.json"));
  ASSERT_GT(buckets.size(), 3U);
  EXPECT_THAT(buckets.front(), HasSubstr("fc2.bias"));
  EXPECT_THAT(buckets[buckets.size() - 2], HasSubstr("conv1.weight"));
  EXPECT_EQ(buckets.back(), "statistics, loss and flags");
}

TEST_F(TimelineTest, ShowsThatBucketsAreSummedWhileBackwardGoesOn) {
  // One shard a worker, whose convolutions keep backward busy long after the first bucket is ready,
  // so that the other thread begins to sum it before backward ends, on a busy machine, too.
  job_.UseImages({.side = 48});
  job_.config.trainer.batch.shards = 2;
  Train(job_, 2);
  const auto phases = Read(FileOf("0.json"));
  const auto is_under_way = [&](double time) {
    return std::ranges::any_of(phases, [time](const Phase& phase) {
      return phase.name == "forward and backward" && phase.begin < time && time < phase.end;
    });
  };
  // In one step or another.
  EXPECT_TRUE(std::ranges::any_of(phases, [&](const Phase& phase) {
    return phase.name == "reduce" && is_under_way(phase.begin);
  }));
}

TEST_F(TimelineTest, AFolderThatCannotBeMadeCostsNoTraining) {
  std::filesystem::create_directories(job_.checkpoints());
  std::ofstream(job_.checkpoints() / "timeline") << "in the way";
  Cluster cluster(job_.config, job_.options);
  cluster.Start(1);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().steps, 13);
}

TEST(BucketsTest, AWorkerLostInTheMiddleOfThemEndsTheRound) {
  DigitsJob job;
  job.config.trainer.gradients.bucket_bytes = kSmallBucket;
  job.config.checkpoint.every_steps = 2;
  job.config.trainer.steps = 30;
  const std::string undisturbed = Train(job, 3).finished.weights_sha256;
  std::filesystem::remove_all(job.checkpoints());
  Cluster cluster(job.config, job.options);
  cluster.Start(3);
  cluster.RunTo(1, 6);
  cluster.Kill(1);
  cluster.WaitUntil("the others hear of it",
                    [&] { return !cluster.EventsOf<PeerLost>(0).empty(); });
  cluster.Start(3);
  cluster.Announce();
  EXPECT_EQ(cluster.WaitUntilFinished().weights_sha256, undisturbed);
}

}  // namespace
}  // namespace ringmaster::train

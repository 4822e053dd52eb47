// Every network that a manifest may name learns in the trainer, made thin and on small samples: one
// batch by heart.
#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/networks.h"
#include "runtime/train/testing/cluster.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster::train {
namespace {

using testing::Cluster;
using testing::DigitsJob;

constexpr int kBatch = 8;

struct Recipe {
  const char* name;
  double width;
  int side = 0;  // of the images; 0: text
  // Where a network's own dropout would hide in a few steps what it has learnt.
  std::optional<double> dropout = std::nullopt;
  std::optional<int> layers = std::nullopt;
};

constexpr Recipe kRecipes[] = {
    {"lenet", 0.5, 28},         {"lenet-bn", 1, 8},
    {"alexnet", 0.125, 64, 0},  {"vgg-16", 0.125, 32, 0},
    {"resnet-18", 0.125, 32},   {"resnet-50", 0.125, 32},
    {"densenet-121", 0.25, 32}, {.name = "gpt-2", .width = 0.1, .layers = 2},
};
static_assert(std::ranges::equal(kRecipes, networks::kNetworks, {}, &Recipe::name,
                                 &networks::Network::name),
              "each network has its recipe");

void PrintTo(const Recipe& recipe, std::ostream* os) {
  *os << recipe.name;
}

// Text that counts to four. Windows begin at each of the four, as their length is odd.
void UseText(DigitsJob& job) {
  std::ofstream out(job.workspace() / "count.txt");
  for (int i = 0; i < 100; ++i) out << "1234";
  training::v1alpha1::Data& data = job.config.trainer.data;
  data.csv.reset();
  data.text.emplace();
  data.text->path = "count.txt";
  data.text->window = 13;
}

void Apply(const Recipe& recipe, DigitsJob& job) {
  constexpr double kNoise = 12;
  training::v1alpha1::TrainerConfig& trainer = job.config.trainer;
  if (recipe.side == 0) {
    UseText(job);
  } else {
    // A batch, and every fifth sample held out.
    job.UseImages({.side = recipe.side, .rows = kBatch + 2, .brightness = 16});
    trainer.data.csv->scale = kNoise;
  }
  trainer.model.zoo = training::v1alpha1::Zoo{.name = recipe.name,
                                              .dropout = recipe.dropout,
                                              .width = recipe.width,
                                              .layers = recipe.layers};
  trainer.optimizer.sgd.reset();
  trainer.optimizer.adam.emplace();
  trainer.optimizer.adam->learning_rate = 0.002;
  trainer.batch.size = kBatch;
  trainer.batch.shards = 1;
  trainer.steps = 16;
  trainer.evaluation.every_epochs = 0;
}

class ZooTest : public ::testing::TestWithParam<Recipe> {};

TEST_P(ZooTest, LearnsABatchByHeart) {
  DigitsJob job;
  Apply(GetParam(), job);
  Cluster cluster(job.config, job.options);
  cluster.Start(1);
  cluster.Announce();
  const Finished finished = cluster.WaitUntilFinished();
  EXPECT_EQ(finished.steps, 16);
  double first_loss = 0;
  for (const Progress& progress : cluster.EventsOf<Progress>(0)) {
    if (progress.step == 1) first_loss = progress.loss;
  }
  EXPECT_GT(first_loss, 1);  // of four classes, log 4 in the mean
  EXPECT_LT(finished.loss, 0.7 * first_loss);
}

INSTANTIATE_TEST_SUITE_P(Networks, ZooTest, ::testing::ValuesIn(kRecipes), [](const auto& info) {
  std::string name = info.param.name;  // without what a test may not have
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace ringmaster::train

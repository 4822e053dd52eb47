#include "runtime/train/testing/digits_job.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "runtime/tensor/random.h"

namespace ringmaster::train::testing {
namespace {

constexpr int kClasses = 4;

void WriteImages(const DigitsJob::Images& images, const std::filesystem::path& path) {
  const int points = images.side * images.side, half = images.side / 2;
  std::ofstream out(path);
  out << "label";
  for (int i = 0; i < points; ++i) out << ",p" << i;
  out << "\n";
  tensor::RandomStream noise({.seed = 11, .domain = tensor::RandomDomain::kAugmentation});
  for (int row = 0; row < images.rows; ++row) {
    const int label = row * 7 % kClasses;
    out << label;
    for (int i = 0; i < points; ++i) {
      const int quadrant = 2 * (i / images.side / half) + (i % images.side / half);
      out << "," << noise.Below(12) + (quadrant == label ? images.brightness : 0);
    }
    out << "\n";
  }
}

}  // namespace

DigitsJob::DigitsJob() : workspace_(TemporaryFolder::Make().value()) {
  training::v1alpha1::TrainerConfig& trainer = config.trainer;
  trainer.model.zoo.emplace();
  trainer.model.zoo->name = "lenet-bn";
  trainer.model.zoo->dropout = 0.3;
  trainer.data.csv.emplace();
  trainer.data.csv->path = "digits.csv";
  trainer.data.csv->classes = kClasses;
  UseImages({});
  trainer.data.csv->scale = 16;
  trainer.optimizer.sgd.emplace();
  trainer.optimizer.sgd->learning_rate = 0.05;
  trainer.optimizer.sgd->momentum = 0.9;
  trainer.batch.size = 26;
  trainer.batch.shards = 8;
  trainer.steps = 13;
  trainer.seed = 7;
  config.checkpoint.every_seconds = 0;
  config.checkpoint.directory = "checkpoints";
  options.workspace = workspace().string();
  options.job = "default/digits";
  options.progress_period = Duration::zero();
}

void DigitsJob::UseImages(const Images& images) {
  WriteImages(images, data());
  config.trainer.data.csv->shape = {1, images.side, images.side};
}

void DigitsJob::AppendSample() const {
  const int side = config.trainer.data.csv->shape.back();
  std::ofstream out(data(), std::ios::app);
  out << 1;
  for (int i = 0; i < side * side; ++i) out << ",3";
  out << "\n";
}

std::vector<std::string> DigitsJob::CheckpointFiles() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints(), ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ringmaster::train::testing

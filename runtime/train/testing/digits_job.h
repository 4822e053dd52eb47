// A small job in a folder of its own: images of 8 by 8 points in four classes, each bright in a
// quadrant of its own, under noise, and a network with
// convolutions, batch norm and dropout. Its samples divide neither by the batch nor by the shards.
#ifndef RINGMASTER_RUNTIME_TRAIN_TESTING_DIGITS_JOB_H_
#define RINGMASTER_RUNTIME_TRAIN_TESTING_DIGITS_JOB_H_

#include <filesystem>
#include <string>
#include <vector>

#include "common/temporary_folder.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/train/options.h"

namespace ringmaster::train::testing {

class DigitsJob {
 public:
  // Writes the data into a new folder, which goes with the object.
  DigitsJob();
  DigitsJob(const DigitsJob&) = delete;
  DigitsJob& operator=(const DigitsJob&) = delete;

  training::v1alpha1::WorkerConfig
      config;  // 13 steps of 26 samples in 8 shards, no checkpoint but the last
  SessionOptions options;

  const std::filesystem::path& workspace() const { return workspace_.path(); }
  struct Images {
    int side = 8;  // even
    int rows = 157;
    int brightness = 4;  // of a class's quadrant, on noise of 0 to 11; 16 is white
  };
  // Writes other images over the data.
  void UseImages(const Images& images);

  std::filesystem::path checkpoints() const { return workspace() / "checkpoints"; }
  std::filesystem::path data() const { return workspace() / "digits.csv"; }
  std::vector<std::string> CheckpointFiles() const;  // names, sorted
  // Adds a line to the data: other data from now on.
  void AppendSample() const;

 private:
  const TemporaryFolder workspace_;
};

}  // namespace ringmaster::train::testing

#endif  // RINGMASTER_RUNTIME_TRAIN_TESTING_DIGITS_JOB_H_

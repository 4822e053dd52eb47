// ringmaster-schedule-plot: `ringmaster schedule plot` runs it, with the job in the environment as
// a worker has it.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/file.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/data/dataset.h"
#include "runtime/train/plot/csv_table.h"
#include "runtime/train/plot/curve.h"
#include "runtime/train/plot/svg_plot.h"
#include "runtime/train/plot/text_plot.h"
#include "runtime/train/program.h"
#include "runtime/train/workload.h"

namespace ringmaster::train::plot {
namespace {

constexpr int kTextColumns = 68;  // with the labels a line of 80

struct Options {
  uint32_t samples = 0;  // 0: those of the data
  std::string svg;
  std::string csv;
};

absl::StatusOr<uint32_t> CountSamples(const training::v1alpha1::TrainerConfig& config) {
  auto splits = data::Load(config.data, env::GetString(contract::kEnvWorkspace));
  if (splits.ok()) return splits->train->size();
  return absl::Status(splits.status().code(),
                      fmt::format("{}; an epoch's length is the number of training samples: give "
                                  "--samples where the data is not on this machine",
                                  Message(splits.status())));
}

absl::Status Run(const Options& options) {
  RM_RETURN_IF_ERROR(env::CheckAll());
  RM_ASSIGN_OR_RETURN(const training::v1alpha1::WorkerConfig config,
                      ParseWorkerConfig(env::GetString(contract::kEnvTrainerConfig)));
  uint32_t samples = options.samples;
  if (samples == 0) {
    RM_ASSIGN_OR_RETURN(samples, CountSamples(config.trainer));
  }
  const optim::RunLength run = RunLengthOf(config.trainer, samples);
  if (!options.svg.empty()) {
    const std::string svg = Svg(MakeCurves(config.trainer, run, kSvgColumns));
    RM_RETURN_IF_ERROR(WriteFileAtomically(options.svg, svg));
  }
  if (!options.csv.empty()) {
    RM_ASSIGN_OR_RETURN(const std::string csv, Csv(config.trainer, run));
    RM_RETURN_IF_ERROR(WriteFileAtomically(options.csv, csv));
  }
  fmt::print("{}", Text(MakeCurves(config.trainer, run, kTextColumns)));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Draws the learning rate and weight decay over the steps of a job.",
               "ringmaster schedule plot");
  Options options;
  app.add_option("--samples", options.samples, "Training samples in an epoch.");
  app.add_option("--svg", options.svg, "Writes a picture, too.");
  app.add_option("--csv", options.csv, "Writes a table of every step, too.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  const absl::Status status = Run(options);
  if (status.ok()) return contract::kExitOk;
  fmt::print(stderr, "{}\n", Message(status));
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace ringmaster::train::plot

int main(int argc, char** argv) {
  return ringmaster::train::plot::Main(argc, argv);
}

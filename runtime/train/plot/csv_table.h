// The learning rate and weight decay of every step of a run, for spreadsheets and programs.
#ifndef RINGMASTER_RUNTIME_TRAIN_PLOT_CSV_TABLE_H_
#define RINGMASTER_RUNTIME_TRAIN_PLOT_CSV_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/schedule.h"

namespace ringmaster::train::plot {

// "step,learning_rate,weight_decay" and a line for each step, in the fewest digits that read as the
// same double. kInvalidArgument: the run has more than a million steps.
absl::StatusOr<std::string> Csv(const training::v1alpha1::TrainerConfig& config,
                                const optim::RunLength& run);

}  // namespace ringmaster::train::plot

#endif  // RINGMASTER_RUNTIME_TRAIN_PLOT_CSV_TABLE_H_

// A quantity over the steps of a run, cut into columns of a drawing. Pure.
#ifndef RINGMASTER_RUNTIME_TRAIN_PLOT_CURVE_H_
#define RINGMASTER_RUNTIME_TRAIN_PLOT_CURVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/schedule.h"

namespace ringmaster::train::plot {

// The least and the largest value of the steps in one column.
struct Column {
  double low = 0, high = 0;
};

struct Curve {
  std::string name;  // "learning rate"
  std::vector<Column> columns;
  double first = 0, last = 0;  // of the first and the last step
  double highest = 0;
  uint64_t highest_step = 0;  // the first that has it

  // Whether all columns are at one value.
  bool constant() const;
};

// What a job's steps are taken with.
class StepRates {
 public:
  StepRates(const training::v1alpha1::TrainerConfig& config, const optim::RunLength& run);

  double RateAt(uint64_t step) const;
  double DecayAt(uint64_t step) const;

 private:
  const optim::RunLength run_;
  const training::v1alpha1::Schedule schedule_;
  const double base_rate_, base_decay_;
};

// The same as drawings: two curves of the same number of columns. Long runs are looked
// at in a thousand steps of each column.
struct Curves {
  optim::RunLength run;
  Curve rate, decay;
};

Curves MakeCurves(const training::v1alpha1::TrainerConfig& config, const optim::RunLength& run,
                  int columns);

// "460 steps: 20.5 epochs of 1437 samples in batches of 64"
std::string Describe(const optim::RunLength& run);

}  // namespace ringmaster::train::plot

#endif  // RINGMASTER_RUNTIME_TRAIN_PLOT_CURVE_H_

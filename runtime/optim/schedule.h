// Learning-rate schedules: what the base rate is multiplied by at a step. Pure functions of where
// the step stands in the run, so a resumed run needs to remember nothing.
#ifndef RINGMASTER_RUNTIME_OPTIM_SCHEDULE_H_
#define RINGMASTER_RUNTIME_OPTIM_SCHEDULE_H_

#include <cstdint>

namespace ringmaster::training::v1alpha1 {
struct Schedule;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// The length of a run and of an epoch.
struct RunLength {
  uint64_t total_steps = 0;
  uint64_t samples = 1;  // in an epoch
  uint64_t batch = 1;    // samples that a step consumes
};

// The factor of `step` (from 0), in (0, 1] for every schedule but a cosine that ends at 0, and a
// step decay whose gamma is above 1:
//   warm-up      (step + 1) / (warmupSteps + 1) while step < warmupSteps, times the schedule below
//   constant     1
//   step decay   gamma, once for each milestone m with step * batch >= m * samples
//   cosine       f + (1 - f) (1 + cos(pi p)) / 2, where p goes from 0 at the end of the warm-up
//                to 1 at the last step and f is finalFraction (Loshchilov and Hutter: "SGDR",
//                ICLR 2017, without restarts)
double LearningRateFactor(const training::v1alpha1::Schedule& schedule, uint64_t step,
                          const RunLength& run);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_SCHEDULE_H_

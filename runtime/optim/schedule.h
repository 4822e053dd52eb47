// Schedules: the learning rate and the weight decay of a step. Pure functions of where the step
// stands in the run, so a resumed run needs to remember nothing.
//
// With i the step from 0, e = floor(i * batch / samples) its epoch, T the run's steps, and W the
// warm-up's steps or epochs:
//
//   target       the optimizer's rate; with linear scaling, that times batch / linearScalingBatch
//                (Goyal et al.: "Accurate, large minibatch SGD: training ImageNet in 1 hour", 2017)
//   warmupSteps  target * (i + 1) / (W + 1) while i < W, times the kind's factor below
//   warmup       instead of the kind's factor, while it lasts:
//     stepping   target * (e + 1) / (W + 1)
//     gradual    start + (target - start) * e / W, where start is startRate, or
//                target * startBatch / batch
//     linear     startRate + (target - startRate) * i / W
//   constant     target
//   step decay   target * gamma, once for each milestone m with i * batch >= m * samples (or i >=
//   m) periodic     target * gamma ^ floor(i * batch / (epochs * samples)), or ^ floor(i / steps)
//   cosine       target * (f + (1 - f) (1 + cos(pi p)) / 2), where p goes from 0 at the end of the
//                warm-up to 1 at the last step and f is finalFraction (Loshchilov and Hutter:
//                "SGDR", ICLR 2017, without restarts)
//   polynomial   target * (f + (1 - f) (1 - i / N) ^ power), N being T or `steps`; as Caffe has it
//   i
//                counts from the start, so the rate drops where a warm-up ends. afterWarmup counts
//                i from there, and N - warm-up is the length of the fall
//   cyclic       x being the epochs, a fraction, since the cycle's begin: target * (l + (1 - l) x /
//                rise) while x < rise, then target * (l + (1 - l) (1 - (x - rise) / (cycle - rise))
//                ^ power), l being lowFraction
//   collapse     over the last C steps: r * (1 - (i - (T - C)) / C) ^ power, r being what the above
//                gives at step T - C (Codreanu, Podareanu, Saletore: "Scale out for large minibatch
//                SGD", 2017); weight decay times weightDecayFactor
//   weightDecay  times the value at i * batch / samples of straight lines between the points
//
// Epochs of warm-ups and collapses are rounded up to steps. All of this is computed in double.
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

// The learning rate of `step` (from 0), for an optimizer of learning rate `base`.
double LearningRateAt(const training::v1alpha1::Schedule& schedule, double base, uint64_t step,
                      const RunLength& run);

// What the optimizer's weight decay is multiplied by at `step`.
double WeightDecayFactor(const training::v1alpha1::Schedule& schedule, uint64_t step,
                         const RunLength& run);

// The step that the collapse begins with; total_steps without one.
uint64_t CollapseBegin(const training::v1alpha1::Schedule& schedule, const RunLength& run);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_SCHEDULE_H_

// LARS (You, Gitman, Ginsburg: "Large batch training of convolutional networks", 2017, algorithm
// 1), for each parameter by itself, with its norms over all of its weights:
//
//   g = scale * sum
//   ratio = trust * |w| / (|g| + weight_decay * |w|);  1 where |w| or |g| is 0, and for groups that
//                                                      are not layer-wise
//   v = momentum * v + rate * ratio * (g + weight_decay * w)
//   w = w - v
//
// Norms are summed in double, in an order that depends on the parameter's size alone.
#ifndef RINGMASTER_RUNTIME_OPTIM_LARS_H_
#define RINGMASTER_RUNTIME_OPTIM_LARS_H_

#include <memory>
#include <vector>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/segments.h"

namespace ringmaster::training::v1alpha1 {
struct Lars;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Keeps one state buffer of `size` floats, "velocity". `segments` are cut by parameter.
std::unique_ptr<Optimizer> MakeLars(const training::v1alpha1::Lars& config, size_t size,
                                    std::vector<Segment> segments);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_LARS_H_

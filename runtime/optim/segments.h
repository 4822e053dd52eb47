// What an optimizer walks over: how a configuration's groups cut the flat buffer.
#ifndef RINGMASTER_RUNTIME_OPTIM_SEGMENTS_H_
#define RINGMASTER_RUNTIME_OPTIM_SEGMENTS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster::optim {

enum class Cut {
  kWhereGroupsDiffer,  // as few segments as the groups allow: one where there are none
  kByParameter,        // one for each parameter
};

// The segments of a buffer of `size` floats. Without `parameters` the buffer is one nameless
// parameter. Floats between parameters, which are zero and have no gradient, may be in a segment.
// kInvalidArgument, by the group's path in the configuration, if a group names or means none of the
// parameters.
absl::StatusOr<std::vector<Segment>> MakeSegments(const training::v1alpha1::Optimizer& config,
                                                  size_t size,
                                                  std::span<const ParameterRange> parameters,
                                                  Cut cut);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_SEGMENTS_H_

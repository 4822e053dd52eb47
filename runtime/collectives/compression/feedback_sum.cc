#include "runtime/collectives/compression/feedback_sum.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives {

absl::Status FeedbackSum::Reduce(Communicator& communicator, std::span<const float> values,
                                 std::span<float> out, std::string_view name) {
  if (values.size() != residual_.size() || out.size() != residual_.size()) {
    return absl::InvalidArgumentError(fmt::format("{}: {} values into {}; the sum is of {}", name,
                                                  values.size(), out.size(), residual_.size()));
  }
  std::transform(values.begin(), values.end(), residual_.begin(), rest_.begin(),
                 std::plus<float>());
  std::fill(out.begin(), out.end(), 0.0F);
  return communicator.Guard(name, [&] { return Exchange(communicator, rest_, out, name); });
}

}  // namespace ringmaster::collectives

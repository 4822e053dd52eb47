#include "runtime/collectives/compression/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/status.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives {
namespace {

// As integers, magnitudes have the order of the numbers, and NaNs are behind infinity.
uint32_t Magnitude(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7fffffffU;
}

size_t CountFor(size_t elements, double share) {
  RM_CHECK(TopKSum::Check(elements, share).ok(), "a top-k sum was not checked");
  return std::min(elements, static_cast<size_t>(std::ceil(share * static_cast<double>(elements))));
}

}  // namespace

void LargestPlaces(std::span<const float> values, std::span<int32_t> places,
                   std::span<uint32_t> scratch) {
  if (places.empty()) return;
  std::transform(values.begin(), values.end(), scratch.begin(), Magnitude);
  const auto kth = scratch.begin() + static_cast<std::ptrdiff_t>(places.size() - 1);
  std::nth_element(scratch.begin(), kth, scratch.end(), std::greater<>());
  const uint32_t least = *kth;
  const auto larger = std::count_if(scratch.begin(), kth, [&](uint32_t m) { return m > least; });
  size_t equal = places.size() - static_cast<size_t>(larger);
  size_t found = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t magnitude = Magnitude(values[i]);
    if (magnitude < least || (magnitude == least && equal == 0)) continue;
    if (magnitude == least) --equal;
    places[found++] = static_cast<int32_t>(i);
  }
}

absl::Status TopKSum::Check(size_t elements, double share) {
  if (!(share > 0 && share <= 1))
    return absl::InvalidArgumentError(fmt::format("a share of {}; it lies in (0, 1]", share));
  if (elements <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} values; places in a top-k sum have 31 bits, so it is of less than 2^31", elements));
}

TopKSum::TopKSum(size_t elements, double share)
    : FeedbackSum(elements),
      k_(CountFor(elements, share)),
      magnitudes_(elements),
      places_(k_),
      values_(k_) {}

absl::Status TopKSum::Exchange(Communicator& communicator, std::span<float> rest,
                               std::span<float> out, std::string_view name) {
  LargestPlaces(rest, places_, magnitudes_);
  for (size_t i = 0; i < k_; ++i)
    values_[i] = std::exchange(rest[static_cast<size_t>(places_[i])], 0.0F);
  const auto world = static_cast<size_t>(communicator.world());
  counts_.assign(world, k_);
  all_places_.resize(world * k_);
  all_values_.resize(world * k_);
  RM_RETURN_IF_ERROR(communicator.Allgather(places_, counts_, all_places_, name));
  RM_RETURN_IF_ERROR(communicator.Allgather(values_, counts_, all_values_, name));
  for (size_t i = 0; i < all_places_.size(); ++i) {
    const auto place = static_cast<size_t>(all_places_[i]);
    if (all_places_[i] < 0 || place >= out.size()) {
      return absl::DataLossError(fmt::format("{}: rank {} sent a value for place {} of {}", name,
                                             i / k_, all_places_[i], out.size()));
    }
    out[place] += all_values_[i];
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

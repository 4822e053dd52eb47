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

std::vector<int32_t> LargestPlaces(std::span<const float> values, size_t k,
                                   std::vector<uint32_t>* scratch) {
  std::vector<int32_t> places;
  if (k == 0) return places;
  scratch->resize(values.size());
  std::transform(values.begin(), values.end(), scratch->begin(), Magnitude);
  const auto kth = scratch->begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scratch->begin(), kth, scratch->end(), std::greater<>());
  const uint32_t least = *kth;
  const auto larger = std::count_if(scratch->begin(), kth, [&](uint32_t m) { return m > least; });
  size_t equal = k - static_cast<size_t>(larger);
  places.reserve(k);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t magnitude = Magnitude(values[i]);
    if (magnitude < least || (magnitude == least && equal == 0)) continue;
    if (magnitude == least) --equal;
    places.push_back(static_cast<int32_t>(i));
  }
  return places;
}

absl::Status TopKSum::Check(size_t elements, double share) {
  if (!(share > 0 && share <= 1))
    return absl::InvalidArgumentError(fmt::format("a share of {}; it lies in (0, 1]", share));
  if (elements <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} values; places in a top-k sum have 31 bits, so it is of less than 2^31", elements));
}

TopKSum::TopKSum(size_t elements, double share)
    : FeedbackSum(elements), k_(CountFor(elements, share)) {}

absl::Status TopKSum::Exchange(Communicator& communicator, std::span<float> rest,
                               std::span<float> out, std::string_view name) {
  const std::vector<int32_t> places = LargestPlaces(rest, k_, &magnitudes_);
  std::vector<float> values(k_);
  for (size_t i = 0; i < k_; ++i)
    values[i] = std::exchange(rest[static_cast<size_t>(places[i])], 0.0F);
  const auto world = static_cast<size_t>(communicator.world());
  const std::vector<size_t> counts(world, k_);
  std::vector<int32_t> all_places(world * k_);
  std::vector<float> all_values(world * k_);
  RM_RETURN_IF_ERROR(communicator.Allgather(places, counts, all_places, name));
  RM_RETURN_IF_ERROR(communicator.Allgather(values, counts, all_values, name));
  for (size_t i = 0; i < all_places.size(); ++i) {
    const auto place = static_cast<size_t>(all_places[i]);
    if (all_places[i] < 0 || place >= out.size()) {
      return absl::DataLossError(fmt::format("{}: rank {} sent a value for place {} of {}", name,
                                             i / k_, all_places[i], out.size()));
    }
    out[place] += all_values[i];
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

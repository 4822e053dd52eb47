#include "runtime/data/resize.h"

#include <algorithm>
#include <cmath>

#include "runtime/device/parallel.h"

namespace ringmaster::data {
namespace {

// Of a pixel `distance` (0 to 2) from where the value is wanted.
double CubicWeight(double distance) {
  constexpr double kA = -0.75;
  const double d = distance;
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
}

}  // namespace

Resizer::Resizer(ImageSize from, ImageSize to, int64_t channels, Interpolation how)
    : from_(from),
      to_(to),
      channels_(channels),
      how_(how),
      rows_(static_cast<size_t>(to.height)),
      columns_(static_cast<size_t>(to.width)),
      strips_(static_cast<size_t>(channels * from.height * to.width)) {}

// For `taps` that cover `extent` pixels from `begin` on.
void Resizer::Place(int64_t begin, int64_t extent, std::vector<Taps>& taps) const {
  const double scale = static_cast<double>(extent) / static_cast<double>(taps.size());
  for (size_t i = 0; i < taps.size(); ++i) {
    const double wanted = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double below = std::floor(wanted);
    const double beyond = wanted - below;
    const bool is_linear = how_ == Interpolation::kLinear;
    const int64_t first = static_cast<int64_t>(below) - (is_linear ? 0 : 1);
    for (size_t k = 0; k < taps[i].places.size(); ++k) {
      const int64_t place = first + static_cast<int64_t>(k);
      taps[i].places[k] = begin + std::clamp<int64_t>(place, 0, extent - 1);
    }
    if (is_linear) {
      taps[i].weights = {static_cast<float>(1 - beyond), static_cast<float>(beyond)};
    } else {
      taps[i].weights = {
          static_cast<float>(CubicWeight(1 + beyond)), static_cast<float>(CubicWeight(beyond)),
          static_cast<float>(CubicWeight(1 - beyond)), static_cast<float>(CubicWeight(2 - beyond))};
    }
  }
}

void Resizer::Resize(const float* image, const Box& box, float* resized) {
  const int64_t width = to_.width, boxed = box.size.height;
  // The y-th row of the box, channel by channel.
  const auto row_at = [&](int64_t y) {
    return image + (y / boxed * from_.height + box.top + y % boxed) * from_.width;
  };
  if (box.size == to_) {
    device::ParallelFor(channels_ * boxed, width, [&](int64_t y) {
      std::copy_n(row_at(y) + box.left, width, resized + y * width);
    });
    return;
  }
  const size_t taps = how_ == Interpolation::kLinear ? 2 : 4;
  const auto sum = [taps](const Taps& of, const float* values, int64_t stride) {
    float total = 0;
    for (size_t k = 0; k < taps; ++k) total += of.weights[k] * values[of.places[k] * stride];
    return total;
  };
  const int64_t work = width * static_cast<int64_t>(taps);
  Place(box.left, box.size.width, columns_);
  Place(0, boxed, rows_);
  device::ParallelFor(channels_ * boxed, work, [&](int64_t y) {
    float* out = strips_.data() + y * width;
    for (const Taps& column : columns_) *out++ = sum(column, row_at(y), 1);
  });
  device::ParallelFor(channels_ * to_.height, work, [&](int64_t y) {
    const float* strips = strips_.data() + y / to_.height * boxed * width;
    const Taps& row = rows_[static_cast<size_t>(y % to_.height)];
    for (int64_t x = 0; x < width; ++x) resized[y * width + x] = sum(row, strips + x, width);
  });
}

}  // namespace ringmaster::data

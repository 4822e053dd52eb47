#include "runtime/collectives/bench/pattern.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace ringmaster::collectives::bench {
namespace {

// `value` of each element in turn, rounded to `type` as the operations round.
Pattern PatternOf(ElementType type, const std::function<double(size_t)>& value) {
  Pattern pattern(kPeriod * SizeOf(type));
  const auto store = [&](auto convert) {
    for (size_t i = 0; i < kPeriod; ++i) {
      const auto element = convert(value(i));
      std::memcpy(pattern.data() + i * sizeof(element), &element, sizeof(element));
    }
  };
  switch (type) {
    case ElementType::kU8:
      store([](double v) { return static_cast<uint8_t>(v); });
      break;
    case ElementType::kI32:
      store([](double v) { return static_cast<int32_t>(v); });
      break;
    case ElementType::kI64:
      store([](double v) { return static_cast<int64_t>(v); });
      break;
    case ElementType::kF16:
      store([](double v) { return ToFloat16(static_cast<float>(v)); });
      break;
    case ElementType::kBF16:
      store([](double v) { return ToBFloat16(static_cast<float>(v)); });
      break;
    case ElementType::kF32:
      store([](double v) { return static_cast<float>(v); });
      break;
    case ElementType::kF64:
      store([](double v) { return v; });
      break;
  }
  return pattern;
}

// A product stays small: of each eight ranks one has a 2 at any place, and those above 8 none.
double ContributionAt(Reduction reduction, int rank, size_t i) {
  const size_t r = static_cast<size_t>(rank);
  if (reduction == Reduction::kProduct) return r < 8 && (i + r) % 8 == 0 ? 2 : 1;
  return static_cast<double>((i * 7 + r * 3) % 4);
}

double CombinedAt(Reduction reduction, int ranks, size_t i) {
  double all = ContributionAt(reduction, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const double one = ContributionAt(reduction, rank, i);
    switch (reduction) {
      case Reduction::kSum:
      case Reduction::kAverage:
        all += one;
        break;
      case Reduction::kMin:
        all = std::min(all, one);
        break;
      case Reduction::kMax:
        all = std::max(all, one);
        break;
      case Reduction::kProduct:
        all *= one;
        break;
    }
  }
  return reduction == Reduction::kAverage ? all / ranks : all;
}

// Calls body(element's place, bytes, pattern's place) for stretches that lie together in both.
void ForEachStretch(size_t count, size_t element_bytes, size_t start,
                    const std::function<void(size_t, size_t, size_t)>& body) {
  for (size_t i = 0; i < count;) {
    const size_t from = (i + start) % kPeriod;
    const size_t stretch = std::min(count - i, kPeriod - from);
    body(i * element_bytes, stretch * element_bytes, from * element_bytes);
    i += stretch;
  }
}

}  // namespace

Pattern MovedBy(ElementType type, int rank) {
  return PatternOf(type, [&](size_t i) {
    return static_cast<double>((i + static_cast<size_t>(rank) * 31) % 128);
  });
}

Pattern Contribution(ElementType type, Reduction reduction, int rank) {
  return PatternOf(type, [&](size_t i) { return ContributionAt(reduction, rank, i); });
}

Pattern Combined(ElementType type, Reduction reduction, int ranks) {
  return PatternOf(type, [&](size_t i) { return CombinedAt(reduction, ranks, i); });
}

void Fill(Elements values, const Pattern& pattern, size_t start) {
  ForEachStretch(values.count(), values.element_bytes(), start,
                 [&](size_t at, size_t bytes, size_t from) {
                   std::memcpy(values.data() + at, pattern.data() + from, bytes);
                 });
}

uint64_t CountWrong(ConstElements values, const Pattern& pattern, size_t start) {
  uint64_t wrong = 0;
  const size_t each = values.element_bytes();
  ForEachStretch(values.count(), each, start, [&](size_t at, size_t bytes, size_t from) {
    if (std::memcmp(values.data() + at, pattern.data() + from, bytes) == 0) return;
    for (size_t i = 0; i < bytes; i += each) {
      wrong += std::memcmp(values.data() + at + i, pattern.data() + from + i, each) != 0 ? 1 : 0;
    }
  });
  return wrong;
}

}  // namespace ringmaster::collectives::bench

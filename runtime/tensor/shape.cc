#include "runtime/tensor/shape.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::tensor {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  assert(dims.size() <= kMaxRank);
  std::copy_n(dims.begin(), rank_, dims_.begin());
}

int64_t Shape::Product(int begin, int end) const {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= dims_[static_cast<size_t>(i)];
  return product;
}

std::string Shape::ToString() const {
  return fmt::format("[{}]", fmt::join(dims(), ", "));
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(dims(), other.dims());
}

std::string ValueSpec::ToString() const {
  const std::string text = fmt::format("{}{}", Name(dtype), shape.ToString());
  if (layout == Layout::kRowMajor) return text;
  return fmt::format("{} in blocks of {}", text, static_cast<int>(layout));
}

}  // namespace ringmaster::tensor

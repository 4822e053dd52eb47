#include <algorithm>
#include <array>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// Output elements that one task sums side by side when they lie next to each other in the input.
constexpr int64_t kBlock = 64;

struct Loop {
  int64_t extent = 1;
  int64_t stride = 0;  // in the input
};

// A nest of loops, outermost first.
struct Nest {
  std::array<Loop, Shape::kMaxRank> loops{};
  int depth = 0;

  void Add(const Loop& loop) { loops[static_cast<size_t>(depth++)] = loop; }
  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < depth; ++i) n *= loops[static_cast<size_t>(i)].extent;
    return n;
  }
  // The input offset of the i-th turn.
  int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (int d = depth - 1; d >= 0; --d) {
      const Loop& loop = loops[static_cast<size_t>(d)];
      offset += i % loop.extent * loop.stride;
      i /= loop.extent;
    }
    return offset;
  }
};

// Sums an input over the axes that broadcasting its output would add. Each output element is summed
// in the input's order, by one thread.
template <typename T>
class SumToKernel : public ReferencePrimitive {
 public:
  explicit SumToKernel(const NodeSpec& node) {
    const Shape &x = InShape(node, 0), &y = OutShape(node, 0);
    std::array<int64_t, Shape::kMaxRank> strides{};
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      strides[static_cast<size_t>(axis)] =
          axis == x.rank() - 1 ? 1 : strides[static_cast<size_t>(axis + 1)] * x.dim(axis + 1);
    }
    const int missing = x.rank() - y.rank();
    int inner = -1;  // the last axis that is kept and has more than one element
    for (int axis = 0; axis < x.rank(); ++axis) {
      const Loop loop{x.dim(axis), strides[static_cast<size_t>(axis)]};
      const bool kept = axis >= missing && y.dim(axis - missing) == x.dim(axis);
      (kept ? kept_ : summed_).Add(loop);
      if (kept && loop.extent > 1) inner = axis;
    }
    // Neighbouring outputs are neighbours in the input when the last axis with more than one
    // element is kept.
    const bool contiguous = inner >= 0 && strides[static_cast<size_t>(inner)] == 1;
    width_ = contiguous ? std::min(kBlock, x.dim(inner)) : 1;
    row_ = contiguous ? x.dim(inner) : 1;
  }

  void Run(const Arguments& a) override {
    const T* x = a.in<T>(0);
    T* y = a.out<T>(0);
    const int64_t blocks_per_row = (row_ + width_ - 1) / width_;
    const int64_t rows = kept_.count() / row_;
    ParallelFor(rows * blocks_per_row, summed_.count() * width_, [&](int64_t task) {
      const int64_t column = task % blocks_per_row * width_;
      const int64_t first = task / blocks_per_row * row_ + column;
      SumBlock(x + kept_.Offset(first), y + first, std::min(width_, row_ - column));
    });
  }

 private:
  void SumBlock(const T* x, T* y, int64_t width) const {
    std::array<double, kBlock> sums{};
    const Loop last =
        summed_.depth > 0 ? summed_.loops[static_cast<size_t>(summed_.depth - 1)] : Loop{};
    const int64_t turns = summed_.count() / last.extent;
    for (int64_t turn = 0; turn < turns; ++turn) {
      const T* from = x + summed_.Offset(turn * last.extent);
      if (width == 1) {
        sums[0] += SumOver(last.extent, [&](int64_t i) { return from[i * last.stride]; });
        continue;
      }
      for (int64_t i = 0; i < last.extent; ++i) {
        for (int64_t j = 0; j < width; ++j)
          sums[static_cast<size_t>(j)] += from[i * last.stride + j];
      }
    }
    for (int64_t j = 0; j < width; ++j) y[j] = static_cast<T>(sums[static_cast<size_t>(j)]);
  }

  Nest kept_, summed_;
  int64_t width_ = 1;  // outputs per task
  int64_t row_ = 1;    // outputs that are neighbours in the input
};

// x's axes as loops over those that y keeps, in row order, and those of which it keeps one place.
struct Axes {
  Nest kept, reduced;

  Axes(const Shape& x, const Shape& y) {
    for (int axis = 0; axis < x.rank(); ++axis)
      (y.dim(axis) == x.dim(axis) ? kept : reduced)
          .Add({x.dim(axis), x.Product(axis + 1, x.rank())});
  }
};

// The largest of each place's elements, or what is no number.
template <typename T>
class MaxOverKernel : public ReferencePrimitive {
 public:
  explicit MaxOverKernel(const NodeSpec& node) : axes_(InShape(node, 0), OutShape(node, 0)) {}

  void Run(const Arguments& a) override {
    const int64_t count = axes_.reduced.count();
    ParallelFor(axes_.kept.count(), count, [&](int64_t place) {
      const T* x = a.in<T>(0) + axes_.kept.Offset(place);
      T largest = x[0];
      for (int64_t i = 1; i < count; ++i) {
        const T one = x[axes_.reduced.Offset(i)];
        if (one > largest || one != one) largest = one;
      }
      a.out<T>(0)[place] = largest;
    });
  }

 private:
  Axes axes_;
};

// (x, y, dy) -> dy at the first of each place's elements that is the largest.
template <typename T>
class MaxOverGradKernel : public ReferencePrimitive {
 public:
  explicit MaxOverGradKernel(const NodeSpec& node) : axes_(InShape(node, 0), InShape(node, 1)) {}

  void Run(const Arguments& a) override {
    const int64_t count = axes_.reduced.count();
    ParallelFor(axes_.kept.count(), count, [&](int64_t place) {
      const int64_t begin = axes_.kept.Offset(place);
      bool found = false;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = begin + axes_.reduced.Offset(i);
        const bool passes = !found && a.in<T>(0)[at] == a.in<T>(1)[place];
        a.out<T>(0)[at] = passes ? a.in<T>(2)[place] : T(0);
        found = found || passes;
      }
    });
  }

 private:
  Axes axes_;
};

}  // namespace

std::unique_ptr<Primitive> MaxOver(const NodeSpec& node) {
  return MakeReal<MaxOverKernel>(node);
}
std::unique_ptr<Primitive> MaxOverGrad(const NodeSpec& node) {
  return MakeReal<MaxOverGradKernel>(node);
}
std::unique_ptr<Primitive> SumTo(const NodeSpec& node) {
  return MakeReal<SumToKernel>(node);
}

}  // namespace ringmaster::kernels::reference

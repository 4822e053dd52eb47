// Copies between a tensor and a box of it. They move bytes, whatever the type; at the memory's
// speed, so that no other kernel is wanted.
#include <array>
#include <cstring>
#include <vector>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// A box of `small`'s extents that begins at `begin` in a tensor of `large`'s extents, as rows of
// bytes: the trailing axes that the box fills are one row with the axis before them.
class Box {
 public:
  Box(const Shape& large, const Shape& small, const std::vector<int64_t>& begin, size_t element) {
    int axis = large.rank() - 1;
    auto whole = static_cast<int64_t>(element);
    while (axis > 0 && large.dim(axis) == small.dim(axis)) whole *= large.dim(axis--);
    if (axis < 0) {
      large_row_ = small_row_ = whole;
      return;
    }
    large_row_ = large.dim(axis) * whole;
    small_row_ = small.dim(axis) * whole;
    begin_ = begin[static_cast<size_t>(axis)] * whole;
    for (int i = 0; i < axis; ++i) {
      outer_[static_cast<size_t>(i)] = {large.dim(i), small.dim(i), begin[static_cast<size_t>(i)]};
    }
    depth_ = axis;
    large_rows_ = large.Product(0, axis);
    small_rows_ = small.Product(0, axis);
  }

  int64_t large_row() const { return large_row_; }  // bytes
  int64_t small_row() const { return small_row_; }
  int64_t large_rows() const { return large_rows_; }
  int64_t small_rows() const { return small_rows_; }
  int64_t begin() const { return begin_; }  // the box's first byte in a row of the large tensor

  // The row of the large tensor in which the box's row lies.
  int64_t LargeRow(int64_t row) const {
    int64_t result = 0, stride = 1;
    for (int i = depth_ - 1; i >= 0; --i) {
      const Axis& axis = outer_[static_cast<size_t>(i)];
      result += (row % axis.small + axis.begin) * stride;
      row /= axis.small;
      stride *= axis.large;
    }
    return result;
  }

  // The box's row that lies in a row of the large tensor, or -1.
  int64_t SmallRow(int64_t row) const {
    int64_t result = 0, stride = 1;
    for (int i = depth_ - 1; i >= 0; --i) {
      const Axis& axis = outer_[static_cast<size_t>(i)];
      const int64_t at = row % axis.large - axis.begin;
      if (at < 0 || at >= axis.small) return -1;
      result += at * stride;
      row /= axis.large;
      stride *= axis.small;
    }
    return result;
  }

 private:
  struct Axis {
    int64_t large, small, begin;
  };
  std::array<Axis, Shape::kMaxRank> outer_{};
  int depth_ = 0;
  int64_t large_row_ = 0, small_row_ = 0, begin_ = 0, large_rows_ = 1, small_rows_ = 1;
};

class SliceKernel : public ReferencePrimitive {
 public:
  explicit SliceKernel(const NodeSpec& node)
      : box_(InShape(node, 0), OutShape(node, 0), node.attributes.Ints("begin"),
             SizeOf(node.outputs[0].dtype)) {}

  void Run(const Arguments& a) override {
    const char* x = a.in<char>(0);
    char* y = a.out<char>(0);
    ParallelFor(box_.small_rows(), box_.small_row(), [&](int64_t row) {
      std::memcpy(y + row * box_.small_row(),
                  x + box_.LargeRow(row) * box_.large_row() + box_.begin(),
                  static_cast<size_t>(box_.small_row()));
    });
  }

 private:
  Box box_;
};

class PadKernel : public ReferencePrimitive {
 public:
  explicit PadKernel(const NodeSpec& node)
      : box_(OutShape(node, 0), InShape(node, 0), node.attributes.Ints("before"),
             SizeOf(node.outputs[0].dtype)) {}

  void Run(const Arguments& a) override {
    const char* x = a.in<char>(0);
    char* y = a.out<char>(0);
    ParallelFor(box_.large_rows(), box_.large_row(), [&](int64_t row) {
      char* to = y + row * box_.large_row();
      const int64_t from = box_.SmallRow(row);
      const int64_t before = from < 0 ? box_.large_row() : box_.begin();
      std::memset(to, 0, static_cast<size_t>(before));
      if (from < 0) return;
      std::memcpy(to + before, x + from * box_.small_row(), static_cast<size_t>(box_.small_row()));
      const int64_t end = before + box_.small_row();
      std::memset(to + end, 0, static_cast<size_t>(box_.large_row() - end));
    });
  }

 private:
  Box box_;
};

class ConcatKernel : public ReferencePrimitive {
 public:
  explicit ConcatKernel(const NodeSpec& node) {
    const auto axis = static_cast<int>(node.attributes.Int("axis"));
    rows_ = OutShape(node, 0).Product(0, axis);
    for (const ValueSpec& input : node.inputs) {
      parts_.push_back(static_cast<int64_t>(input.bytes()) / rows_);
      row_ += parts_.back();
    }
  }

  void Run(const Arguments& a) override {
    ParallelFor(rows_, row_, [&](int64_t row) {
      char* to = a.out<char>(0) + row * row_;
      for (size_t i = 0; i < parts_.size(); ++i) {
        std::memcpy(to, a.in<char>(static_cast<int>(i)) + row * parts_[i],
                    static_cast<size_t>(parts_[i]));
        to += parts_[i];
      }
    });
  }

 private:
  std::vector<int64_t> parts_;  // bytes of each input in a row of the result
  int64_t rows_ = 1, row_ = 0;
};

}  // namespace

std::unique_ptr<Primitive> Concat(const NodeSpec& node) {
  return std::make_unique<ConcatKernel>(node);
}
std::unique_ptr<Primitive> Pad(const NodeSpec& node) {
  return std::make_unique<PadKernel>(node);
}
std::unique_ptr<Primitive> Slice(const NodeSpec& node) {
  return std::make_unique<SliceKernel>(node);
}

}  // namespace ringmaster::kernels::reference

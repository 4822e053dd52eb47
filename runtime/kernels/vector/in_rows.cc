#include "runtime/kernels/vector/in_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::kernels::vector {
namespace {

class BetweenReorders : public Primitive {
 public:
  BetweenReorders(const NodeSpec& node, std::unique_ptr<Primitive> inner)
      : inner_(std::move(inner)), inputs_(node.inputs.size()) {
    size_t work = inner_->scratch_bytes();  // that all of them have, one after the other
    const auto add = [&](const tensor::ValueSpec& spec, int input) {
      if (spec.layout == tensor::Layout::kRowMajor) return;
      const tensor::ValueSpec rows{spec.shape, spec.dtype};
      const tensor::ValueSpec &from = input < 0 ? rows : spec, &to = input < 0 ? spec : rows;
      auto reorder = Prepare({"reorder", {}, {&from, 1}, {&to, 1}}, Selection::kFastest);
      work = std::max(work, reorder->scratch_bytes());
      images_.push_back({input, rows.bytes(), 0, std::move(reorder)});
    };
    for (size_t i = 0; i < inputs_; ++i) add(node.inputs[i], static_cast<int>(i));
    add(node.outputs[0], -1);
    scratch_bytes_ = Aligned(work);
    for (Image& image : images_)
      image.offset = std::exchange(scratch_bytes_, scratch_bytes_ + Aligned(image.bytes));
  }

  size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string name() const override { return inner_->name(); }
  size_t reordered_bytes() const override {
    size_t bytes = 0;
    for (const Image& image : images_) bytes += image.bytes;
    return bytes;
  }

  void Run(const Arguments& a) override {
    std::array<const void*, kMostInputs> inputs{};
    std::copy_n(a.inputs, inputs_, inputs.begin());
    void* output = a.outputs[0];
    const auto reorder = [&](const Image& image, const void* from, void* to) {
      image.reorder->Run({&from, &to, a.scratch, a.context});
    };
    for (const Image& image : images_) {
      void* const rows = RowsOf(image, a);
      if (image.input < 0) {
        output = rows;
      } else {
        reorder(image, a.inputs[image.input], rows);
        inputs[static_cast<size_t>(image.input)] = rows;
      }
    }
    inner_->Run({inputs.data(), &output, a.scratch, a.context});
    if (output != a.outputs[0]) reorder(images_.back(), output, a.outputs[0]);
  }

 private:
  static constexpr size_t kMostInputs = 3;
  struct Image {
    int input;             // -1: the output, the last of them
    size_t bytes, offset;  // of the scratch memory
    std::unique_ptr<Primitive> reorder;
  };
  static size_t Aligned(size_t bytes) {
    constexpr size_t kLine = 64;
    return (bytes + kLine - 1) / kLine * kLine;
  }
  static void* RowsOf(const Image& image, const Arguments& a) {
    return static_cast<std::byte*>(a.scratch) + image.offset;
  }

  const std::unique_ptr<Primitive> inner_;
  const size_t inputs_;
  std::vector<Image> images_;
  size_t scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Primitive> InRows(const NodeSpec& node, std::unique_ptr<Primitive> kernel) {
  if (IsRowMajor(node)) return kernel;
  return std::make_unique<BetweenReorders>(node, std::move(kernel));
}

}  // namespace ringmaster::kernels::vector

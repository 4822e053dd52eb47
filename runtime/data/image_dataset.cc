#include "runtime/data/image_dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/device/parallel.h"

namespace ringmaster::data {
namespace {

using training::v1alpha1::Crop;
using training::v1alpha1::Images;

// What belongs to different draws of one sample: whether it is mirrored does not hang on its box.
constexpr uint32_t kBoxDraws = 0, kMirrorDraws = 1;

Interpolation InterpolationOf(training::v1alpha1::Resize resize) {
  return resize == training::v1alpha1::Resize::kCubic ? Interpolation::kCubic
                                                      : Interpolation::kLinear;
}

// Of images [channels, height, width].
ImageSize SizeOf(const SampleFormat& format) {
  return {format.input.shape.dim(1), format.input.shape.dim(2)};
}

SampleFormat Resized(SampleFormat format, const Images& images) {
  if (images.size.empty()) return format;
  format.input.shape =
      tensor::Shape{format.input.shape.dim(0), images.size.front(), images.size.back()};
  return format;
}

// A number for each channel.
std::vector<float> PerChannel(const std::vector<double>& given, int64_t channels, double other) {
  std::vector<float> all(static_cast<size_t>(channels), static_cast<float>(other));
  for (size_t c = 0; c < all.size() && !given.empty(); ++c)
    all[c] = static_cast<float>(given[given.size() == 1 ? 0 : c]);
  return all;
}

// What a thread needs to change one image after another.
struct Workspace {
  Workspace(ImageSize from, ImageSize to, int64_t channels, Interpolation how)
      : from(from),
        to(to),
        how(how),
        resizer(from, to, channels, how),
        image(static_cast<size_t>(channels * from.pixels())) {}
  bool Fits(ImageSize its_from, ImageSize its_to, int64_t channels, Interpolation its_how) const {
    return from == its_from && to == its_to && how == its_how &&
           image.size() == static_cast<size_t>(channels * from.pixels());
  }
  const ImageSize from, to;
  const Interpolation how;
  Resizer resizer;
  std::vector<float> image;
};

// This thread's. A job has images of one size, so it is made once.
Workspace& WorkspaceFor(ImageSize from, ImageSize to, int64_t channels, Interpolation how) {
  thread_local std::unique_ptr<Workspace> kept;
  if (!kept || !kept->Fits(from, to, channels, how))
    kept = std::make_unique<Workspace>(from, to, channels, how);
  return *kept;
}

class ImageDataset : public Dataset {
 public:
  ImageDataset(std::unique_ptr<const Dataset> from, const Images& images, const ImageRun& run)
      : Dataset(Resized(from->format(), images)),
        from_(std::move(from)),
        images_(images),
        run_(run),
        before_(SizeOf(from_->format())),
        after_(SizeOf(format())),
        channels_(from_->format().input.shape.dim(0)),
        mean_(PerChannel(images.mean, channels_, 0)),
        deviation_(PerChannel(images.deviation, channels_, 1)) {}

  uint32_t size() const override { return from_->size(); }

 private:
  void CopySample(uint32_t row, void* input, int32_t* labels) const override {
    Change(row, {.size = before_}, /*is_mirrored=*/false, input, labels);
  }

  void CopyTrainingSample(uint32_t row, uint64_t position, void* input,
                          int32_t* labels) const override {
    tensor::RandomKey key{
        .seed = run_.seed, .domain = tensor::RandomDomain::kAugmentation, .position = position};
    Box box{.size = before_};
    if (images_.crop && position < run_.whole_from) {
      key.op = kBoxDraws;
      tensor::RandomStream stream(key);
      box = DrawBox(*images_.crop, before_, stream);
    }
    key.op = kMirrorDraws;
    const bool is_mirrored = images_.mirror && tensor::RandomStream(key).Below(2) == 1;
    Change(row, box, is_mirrored, input, labels);
  }

  void Change(uint32_t row, const Box& box, bool is_mirrored, void* input, int32_t* labels) const {
    Workspace& workspace =
        WorkspaceFor(before_, after_, channels_, InterpolationOf(images_.resize));
    Copy(*from_, row, workspace.image.data(), labels);
    auto* const out = static_cast<float*>(input);
    workspace.resizer.Resize(workspace.image.data(), box, out);
    const int64_t width = after_.width;
    device::ParallelFor(channels_ * after_.height, width, [&](int64_t y) {
      const std::span<float> row(out + y * width, static_cast<size_t>(width));
      if (is_mirrored) std::ranges::reverse(row);
      const auto channel = static_cast<size_t>(y / after_.height);
      for (float& value : row) value = (value - mean_[channel]) / deviation_[channel];
    });
  }

  const std::unique_ptr<const Dataset> from_;
  const Images& images_;
  const ImageRun run_;
  const ImageSize before_, after_;
  const int64_t channels_;
  const std::vector<float> mean_, deviation_;
};

absl::Status Wrong(const char* field, const std::string& what) {
  return absl::InvalidArgumentError(fmt::format("spec.trainer.data.images{}: {}", field, what));
}

absl::Status CheckPerChannel(const char* field, size_t numbers, int64_t channels) {
  if (numbers <= 1 || static_cast<int64_t>(numbers) == channels) return absl::OkStatus();
  return Wrong(field, fmt::format("has {} numbers, and the images {} channels: give a number for "
                                  "each, or one for all",
                                  numbers, channels));
}

// As f32, in which the arithmetic is.
absl::Status CheckNumbers(const Images& images) {
  constexpr double kMost = std::numeric_limits<float>::max();
  constexpr double kLeast = std::numeric_limits<float>::min();
  for (const double mean : images.mean) {
    if (!(std::abs(mean) <= kMost)) return Wrong(".mean", fmt::format("{} is no f32", mean));
  }
  for (const double deviation : images.deviation) {
    if (!(deviation >= kLeast && deviation <= kMost))
      return Wrong(".deviation", fmt::format("{} is not {} to {}", deviation, kLeast, kMost));
  }
  return absl::OkStatus();
}

absl::Status Check(const Images& images, const SampleFormat& format) {
  const tensor::ValueSpec& input = format.input;
  if (input.shape.rank() != 3 || input.dtype != tensor::DType::kF32) {
    return Wrong("", fmt::format("samples are {}, no images [channels, height, width] of f32",
                                 input.ToString()));
  }
  RM_RETURN_IF_ERROR(CheckNumbers(images));
  RM_RETURN_IF_ERROR(CheckPerChannel(".mean", images.mean.size(), input.shape.dim(0)));
  return CheckPerChannel(".deviation", images.deviation.size(), input.shape.dim(0));
}

// At least a pixel, whatever the numbers.
int64_t Pixels(double exact) {
  return std::max<int64_t>(1, std::llround(exact));
}

// As large as `image` allows, in its middle.
Box LargestBox(const Crop& crop, ImageSize image) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double aspect = std::clamp(width / height, crop.min_aspect, crop.max_aspect);
  const ImageSize size{.height = std::min(image.height, Pixels(width / aspect)),
                       .width = std::min(image.width, Pixels(height * aspect))};
  return {.top = (image.height - size.height) / 2,
          .left = (image.width - size.width) / 2,
          .size = size};
}

}  // namespace

Box DrawBox(const Crop& crop, ImageSize image, tensor::RandomStream& stream) {
  constexpr int kTries = 10;
  const auto draw = [&stream](double low, double high) {
    return low + (high - low) * static_cast<double>(tensor::ToUniform(stream.Next()));
  };
  for (int i = 0; i < kTries; ++i) {
    const double area = draw(crop.min_area, crop.max_area) * static_cast<double>(image.pixels());
    const double aspect = draw(crop.min_aspect, crop.max_aspect);
    const ImageSize size{.height = Pixels(std::sqrt(area / aspect)),
                         .width = Pixels(std::sqrt(area * aspect))};
    if (size.height > image.height || size.width > image.width) continue;
    const int64_t top = stream.Below(static_cast<uint32_t>(image.height - size.height + 1));
    const int64_t left = stream.Below(static_cast<uint32_t>(image.width - size.width + 1));
    return {.top = top, .left = left, .size = size};
  }
  return LargestBox(crop, image);
}

absl::Status ChangeImages(const Images& images, const ImageRun& run, Splits& splits) {
  for (std::unique_ptr<const Dataset>* part : {&splits.train, &splits.held_out}) {
    RM_RETURN_IF_ERROR(Check(images, (*part)->format()));
    *part = std::make_unique<ImageDataset>(std::move(*part), images, run);
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::data

// A part of an image at another size.
#ifndef RINGMASTER_RUNTIME_DATA_RESIZE_H_
#define RINGMASTER_RUNTIME_DATA_RESIZE_H_

#include <array>
#include <cstdint>
#include <vector>

namespace ringmaster::data {

// How values between pixels are found.
enum class Interpolation {
  kLinear,  // from the two nearest pixels in each direction
  // From the four nearest (Keys: "Cubic convolution interpolation for digital image processing",
  // IEEE TASSP 29, 1981) with a = -0.75, as OpenCV and PyTorch have it.
  kCubic,
};

// In pixels.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  int64_t pixels() const { return height * width; }
  bool operator==(const ImageSize&) const = default;
};

// A rectangle of an image's pixels, wholly inside it.
struct Box {
  int64_t top = 0;
  int64_t left = 0;
  ImageSize size;
  bool operator==(const Box&) const = default;
};

// Images of one size to images of another, channel by channel. Pixels are squares: their centres
// are half a pixel from the box's edges, beyond which its outermost pixels go on. Nothing is
// smoothed before an image becomes smaller. The same bits on every machine and for any number of
// compute threads, which share the work. Not thread-safe; allocates nothing after it was made.
class Resizer {
 public:
  Resizer(ImageSize from, ImageSize to, int64_t channels, Interpolation how);

  // What `box` of `image`, [channels, height, width], looks like at the new size.
  void Resize(const float* image, const Box& box, float* resized);

 private:
  // What one row or column of the result is made of: pixels' places, which may be the same, and
  // their weights, of which the first two count where it is linear.
  struct Taps {
    std::array<int64_t, 4> places;
    std::array<float, 4> weights;
  };
  void Place(int64_t begin, int64_t extent, std::vector<Taps>& taps) const;

  const ImageSize from_;
  const ImageSize to_;
  const int64_t channels_;
  const Interpolation how_;
  std::vector<Taps> rows_, columns_;
  std::vector<float> strips_;  // the box's rows at the new width, channel by channel
};

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_RESIZE_H_

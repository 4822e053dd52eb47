// The matrix of an image's windows: each column is what a place of the result sees, each row one
// tap of one channel at every place. For convolutions as products (convolution.cc). Internal to
// this folder, for files that are compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_CONVOLUTION_MATRIX_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_CONVOLUTION_MATRIX_H_

#include <algorithm>
#include <cstdint>
#include <immintrin.h>

#include "runtime/kernels/attributes.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/window.h"
#include "runtime/tensor/shape.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// Up to this many floats one image's matrix, its windows by its places, stays in the second cache.
inline constexpr int64_t kMostMatrix = 1 << 16;
inline constexpr int64_t kMostWindow = 512;
inline constexpr int64_t kMostChannels = 256;

// What all three kernels need, from the shapes of x, weight and y. A group of a sample's channels
// is an image of its own, with weights of its own.
struct ConvolutionMatrix {
  int64_t batch, groups;
  int64_t in_channels, out_channels;  // of a group
  int64_t image, result;              // elements of x and of y, for a group of a sample
  int64_t places, window;             // columns and rows of an image's matrix
  Axis h, w;

  ConvolutionMatrix(const tensor::Shape& x, const tensor::Shape& weight, const tensor::Shape& y,
                    const Attributes& attributes)
      : batch(x.dim(0)),
        groups(std::max<int64_t>(1, attributes.Int("groups"))),
        in_channels(x.dim(1) / groups),
        out_channels(y.dim(1) / groups),
        image(x.Product(1, 4) / groups),
        result(y.Product(1, 4) / groups),
        places(y.Product(2, 4)),
        window(weight.Product(1, 4)) {
    const Window both = MakeWindow(x, y, weight.dim(2), weight.dim(3), attributes);
    h = both.h;
    w = both.w;
  }

  int64_t images() const { return batch * groups; }
  // Of a group.
  int64_t weights() const { return out_channels * window; }

  bool Small() const {
    return window * places <= kMostMatrix && window <= kMostWindow && out_channels <= kMostChannels;
  }
  // Rows of the result whose places' columns of the matrix stay in the second cache, or one.
  int64_t RowsAtOnce() const {
    return std::clamp<int64_t>(kMostMatrix / (window * w.out), 1, h.out);
  }

  // An image's matrix, of the places in these rows of the result: each row is what one tap of one
  // channel sees at every place.
  void Gather(const float* x, const Range& rows, float* to) const {
    const int64_t columns = rows.size() * w.out;
    ForTaps([&](const Tap& tap, int64_t row) {
      float* const all = to + row * columns;
      if (h.padding != 0 || w.padding != 0) std::fill_n(all, columns, 0.0F);
      const Runs runs = RunsOf(tap, rows);
      if (w.stride != 1) {
        ForRuns(runs, x, all, [&](const float* from, float* run) {
          for (int64_t i = 0; i < runs.count; ++i) run[i] = from[i * w.stride];
        });
      } else if (runs.count == kLane) {
        ForRuns(runs, x, all, CopyLane);
      } else if (runs.count > kLane) {
        // The last vector overlaps the one before.
        ForRuns(runs, x, all, [last = runs.count - kLane](const float* from, float* run) {
          for (int64_t i = 0; i < last; i += kLane) CopyLane(from + i, run + i);
          CopyLane(from + last, run + last);
        });
      } else {
        ForRuns(runs, x, all, [&](const float* from, float* run) {
          for (int64_t i = 0; i < runs.count; ++i) run[i] = from[i];
        });
      }
    });
  }

  // The adjoint: adds all rows to the image.
  void Scatter(const float* from, const Range& rows, float* dx) const {
    const int64_t columns = rows.size() * w.out;
    ForTaps([&](const Tap& tap, int64_t row) {
      const float* const all = from + row * columns;
      const Runs runs = RunsOf(tap, rows);
      if (w.stride != 1) {
        ForRuns(runs, dx, all, [&](float* to, const float* run) {
          for (int64_t i = 0; i < runs.count; ++i) to[i * w.stride] += run[i];
        });
      } else {
        ForRuns(runs, dx, all, [&](float* to, const float* run) {
          int64_t i = 0;
          for (; i + kLane <= runs.count; i += kLane) AddLane(run + i, to + i);
          for (; i < runs.count; ++i) to[i] += run[i];
        });
      }
    });
  }

 private:
  // What a row of the matrix stands for: a channel, and a place in the window.
  struct Tap {
    int64_t channel, i, j;
  };

  // Calls body(tap, its number) for all rows of the matrix.
  template <typename Body>
  void ForTaps(const Body& body) const {
    Tap tap{};
    for (int64_t row = 0; row < window; ++row) {
      body(tap, row);
      if (++tap.j < w.window) continue;
      tap.j = 0;
      if (++tap.i < h.window) continue;
      tap.i = 0;
      ++tap.channel;
    }
  }

  // The places of one tap that lie inside the image, of those in some rows of the result: in each
  // of `rows` of these `count` that are side by side, and in the image w.stride apart.
  struct Runs {
    int64_t rows, count;
    int64_t place, at;  // of the first, in those rows of the result and in the image
  };

  Runs RunsOf(const Tap& tap, const Range& rows) const {
    const Range inside = Inside(h, tap.i), across = Inside(w, tap.j);
    const int64_t begin = std::max(inside.begin, rows.begin);
    const Range down{begin, std::max(begin, std::min(inside.end, rows.end))};
    return {down.size(), across.size(), (down.begin - rows.begin) * w.out + across.begin,
            (tap.channel * h.in + h.InputAt(down.begin, tap.i)) * w.in +
                w.InputAt(across.begin, tap.j)};
  }

  // Places whose tap falls inside: 0 <= place * stride - padding + tap * dilation < in.
  static Range Inside(const Axis& axis, int64_t tap) {
    const auto places_before = [&](int64_t pixels) {
      if (pixels <= 0) return int64_t{0};
      return axis.stride == 1 ? pixels : (pixels + axis.stride - 1) / axis.stride;
    };
    const int64_t lack = axis.padding - tap * axis.dilation;
    const int64_t end = std::min(axis.out, places_before(axis.in + lack));
    return {std::min(places_before(lack), end), end};
  }

  // Calls body(where a run begins in the image, where in the row of the matrix).
  template <typename Image, typename Row, typename Body>
  void ForRuns(const Runs& runs, Image* image, Row* row, const Body& body) const {
    if (runs.rows == 0 || runs.count == 0) return;
    image += runs.at;
    row += runs.place;
    for (int64_t i = 0; i < runs.rows; ++i) {
      body(image, row);
      image += h.stride * w.in;
      row += w.out;
    }
  }

  static void CopyLane(const float* from, float* to) {
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
  }
  static void AddLane(const float* from, float* to) {
    _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_loadu_ps(from)));
  }
};

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_CONVOLUTION_MATRIX_H_

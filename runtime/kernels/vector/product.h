// A product of small matrices in registers: tiles of 6 x 16 elements, of 14 x 32 with AVX-512, one
// fused multiply-add for each step along the inner axis, after the micro-kernels of BLIS (Van Zee,
// van de Geijn: "BLIS: a framework for rapidly instantiating BLAS functionality", 2015), without
// its blocking for caches. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_PRODUCT_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/activation.h"

namespace ringmaster::kernels::vector {

// How far apart the elements of neighbouring rows and columns are.
struct Strides {
  int64_t row = 0;
  int64_t column = 0;
};

// Columns of a tile.
inline constexpr int64_t kTileColumns = 16;

// Panels of kTileColumns columns, and how far from one to the next it is in B and in the result.
struct PanelRange {
  int64_t count = 1;
  int64_t b_step = 0, y_step = 0;
};

// What each task makes of the columns of the result that it has just made, while they are in the
// cache: the activation of each element, in a matrix as dense as the result, or in its place.
struct Afterwards {
  Activation activation = Activation::kNone;
  float* to = nullptr;
};

// C = A B, plus a row added to every row of the result; with `relu` its positive part, where what
// is no number stays. A is m x k, B is k x n, C is m x n and dense. Each element of C is a sum over
// k in order, the row's element added last.
struct Product {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  Strides a, b;
  bool relu = false;

  // Memory for Run: columns of B, side by side.
  size_t scratch_bytes() const;
  // `bias` may be null. Uses the process's threads where that pays.
  void Run(const float* x, const float* w, const float* bias, float* y, float* scratch,
           const Afterwards& afterwards = {}) const;
  // The same on the calling thread alone, for those that share work among threads themselves.
  void RunAlone(const float* x, const float* w, const float* bias, float* y, float* scratch) const;

  // For products whose B is made piece by piece: y = A B, or y + A B, whose products are added up
  // before y is, for the sake of what a long sum loses. B is panels of at most kTileColumns columns
  // that Pack has brought together; kTileColumns columns of y are written for each, whose rows are
  // `stride` apart. n and b are not looked at. One thread.
  void RunPacked(const float* x, const float* packed, float* y, int64_t stride, bool accumulate,
                 const PanelRange& panels = {}) const;

 private:
  int64_t panels() const { return (n + kTileColumns - 1) / kTileColumns; }
  // At most `count` columns of C, one panel or two.
  void RunColumns(int64_t first, int64_t count, const float* x, const float* w, const float* bias,
                  float* y, float* scratch) const;
};

// For tests, which compare the two: which tiles all products use from now on; at first the widest
// that may be used (device/vectors.h). False, and nothing is changed, where they may not.
bool UseWideTiles(bool wide);
// Whether they are the widest that there are, of AVX-512: for kernels with both kinds themselves.
bool UsesWideTiles();

// Brings `columns` columns of a matrix of k rows together, at most kTileColumns: `to` gets
// kTileColumns floats for each row, zeros behind the last column.
void Pack(int64_t k, int64_t columns, Strides strides, const float* from, float* to);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_PRODUCT_H_

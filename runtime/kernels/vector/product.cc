#include "runtime/kernels/vector/product.h"

#include <algorithm>
#include <immintrin.h>
#include <utility>

#include "runtime/device/parallel.h"

// From here on for processors that have them; Fits looks whether this one does.
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kRows = 6;                // of a tile: 12 accumulators of 16 registers
constexpr int64_t kColumns = kTileColumns;  // two registers
constexpr int64_t kLane = 8;

// Columns of B that a tile works on, and where the rows below lie.
struct Panel {
  const float* data;
  int64_t stride;
};

// Where a panel of C lies, what is added to each of its rows, or null, and whether the product is
// added to what is there.
struct Target {
  float* data;
  int64_t stride;
  const float* bias;
  bool accumulate;

  Target From(int64_t row) const { return {data + row * stride, stride, bias, accumulate}; }
};

struct Accumulators {
  __m256 low, high;
};

inline Accumulators Begin(const Target& c, int64_t row) {
  if (!c.accumulate) return {_mm256_setzero_ps(), _mm256_setzero_ps()};
  const float* from = c.data + row * c.stride;
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + kLane)};
}

// One tile of `sizeof...(kRow)` rows.
template <size_t... kRow>
inline void Tile(std::index_sequence<kRow...>, const Product& p, const float* a, Panel b,
                 const Target& c) {
  Accumulators sums[sizeof...(kRow)] = {Begin(c, kRow)...};
  const float* from = b.data;
  for (int64_t i = 0; i < p.k; ++i) {
    const __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + kLane);
    const auto add = [&](Accumulators& sum, int64_t row) {
      const __m256 value = _mm256_broadcast_ss(a + row * p.a.row);
      sum.low = _mm256_fmadd_ps(value, low, sum.low);
      sum.high = _mm256_fmadd_ps(value, high, sum.high);
    };
    (add(sums[kRow], kRow), ...);
    a += p.a.column;
    from += b.stride;
  }
  const auto store = [&](Accumulators sum, int64_t row) {
    if (c.bias != nullptr) {
      sum.low = _mm256_add_ps(sum.low, _mm256_loadu_ps(c.bias));
      sum.high = _mm256_add_ps(sum.high, _mm256_loadu_ps(c.bias + kLane));
    }
    _mm256_storeu_ps(c.data + row * c.stride, sum.low);
    _mm256_storeu_ps(c.data + row * c.stride + kLane, sum.high);
  };
  (store(sums[kRow], kRow), ...);
}

// The tile of `rows` rows, 1 to kRows.
template <size_t kTall = kRows>
inline void TileOf(int64_t rows, const Product& p, const float* a, Panel b, const Target& c) {
  if constexpr (kTall > 1) {
    if (rows < static_cast<int64_t>(kTall)) return TileOf<kTall - 1>(rows, p, a, b, c);
  }
  Tile(std::make_index_sequence<kTall>(), p, a, b, c);
}

// Eight rows of eight floats, each row `stride` apart, to `to` as columns, kColumns apart.
inline void Transpose(const float* from, int64_t stride, float* to) {
  __m256 r[kLane], t[kLane];
  for (int i = 0; i < kLane; ++i) r[i] = _mm256_loadu_ps(from + i * stride);
  for (int i = 0; i < kLane; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < kLane; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * kColumns, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * kColumns, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// All rows of kColumns columns of C.
void RunPanel(const Product& p, const float* x, Panel b, const Target& c) {
  for (int64_t row = 0; row < p.m; row += kRows)
    TileOf(std::min(kRows, p.m - row), p, x + row * p.a.row, b, c.From(row));
}

// The last columns of C, fewer than a tile has: each tile goes through a buffer.
void RunNarrowPanel(const Product& p, int64_t columns, const float* x, const float* packed,
                    const float* bias, float* y) {
  alignas(32) float tile[kRows * kColumns], offsets[kColumns] = {};
  if (bias != nullptr) std::copy_n(bias, columns, offsets);
  const Target through{tile, kColumns, bias != nullptr ? offsets : nullptr, false};
  for (int64_t row = 0; row < p.m; row += kRows) {
    const int64_t rows = std::min(kRows, p.m - row);
    TileOf(rows, p, x + row * p.a.row, {packed, kColumns}, through);
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(tile + i * kColumns, columns, y + (row + i) * p.n);
  }
}

}  // namespace

void Pack(int64_t k, int64_t columns, Strides strides, const float* from, float* to) {
  int64_t packed = 0;
  if (strides.row == 1 && columns == kColumns) {
    for (; packed + kLane <= k; packed += kLane) {
      Transpose(from + packed, strides.column, to + packed * kColumns);
      Transpose(from + packed + kLane * strides.column, strides.column,
                to + packed * kColumns + kLane);
    }
  }
  for (; packed < k; ++packed) {
    float* row = to + packed * kColumns;
    for (int64_t j = 0; j < columns; ++j) row[j] = from[packed * strides.row + j * strides.column];
    std::fill(row + columns, row + kColumns, 0.0F);
  }
}

void Product::RunPacked(const float* x, const float* packed, float* y, bool accumulate) const {
  RunPanel(*this, x, {packed, kColumns}, {y, kColumns, nullptr, accumulate});
}

size_t Product::scratch_bytes() const {
  return static_cast<size_t>(panels() * kColumns * k) * sizeof(float);
}

void Product::Run(const float* x, const float* w, const float* bias, float* y,
                  float* scratch) const {
  // A tile's step does about as much as touching four elements.
  device::ParallelFor(panels(), (m * k + 3) / 4,
                      [&](int64_t panel) { RunColumns(panel, x, w, bias, y, scratch); });
}

void Product::RunAlone(const float* x, const float* w, const float* bias, float* y,
                       float* scratch) const {
  for (int64_t panel = 0; panel < panels(); ++panel) RunColumns(panel, x, w, bias, y, scratch);
}

void Product::RunColumns(int64_t panel, const float* x, const float* w, const float* bias, float* y,
                         float* scratch) const {
  const int64_t first = panel * kColumns, columns = std::min(kColumns, n - first);
  const float* from = w + first * b.column;
  const Target to{y + first, n, bias == nullptr ? nullptr : bias + first, false};
  if (b.column == 1 && columns == kColumns) return RunPanel(*this, x, {from, b.row}, to);
  float* packed = scratch + first * k;
  Pack(k, columns, b, from, packed);
  if (columns == kColumns) return RunPanel(*this, x, {packed, kColumns}, to);
  RunNarrowPanel(*this, columns, x, packed, to.bias, to.data);
}

}  // namespace ringmaster::kernels::vector

#include "runtime/kernels/vector/product.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <immintrin.h>
#include <utility>

#include "runtime/device/parallel.h"
#include "runtime/device/vectors.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/activations.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/tile_row.h"
#include "runtime/kernels/vector/wide_lanes.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kColumns = kTileColumns;

// Columns of B that a tile works on, and where the rows below and the next panel's columns lie.
struct Panel {
  const float* data;
  int64_t stride;
  int64_t next = 0;
};

// How far apart the rows of C are, what is added to each of them, or null, whether the product is
// added to what is there, and where the next panel lies.
struct Target {
  int64_t stride;
  const float* bias;
  bool accumulate;
  int64_t next = 0;
};

// One tile: some rows of C, from a's and y's on, kColumns columns of one panel or of two.
using TileFunction = void (*)(const Product& p, const float* a, const Panel& b, const Target& c,
                              float* y);

// For processors with AVX-512: a register for each row of a panel, 28 accumulators for two panels
// beside what they are made of. Both kinds of tiles compute each element alike, to the last bit.
#pragma GCC push_options
#pragma GCC target("avx512f")

struct WideTile {
  static constexpr size_t kRows = 14;

  // A maximum would keep the sign of -0.
  static __m512 PositivePart(__m512 v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ), v);
  }

  // A panel's part of a tile.
  template <size_t... kRow>
  struct Rows {
    __m512 sums[sizeof...(kRow)];

    Rows() : sums{(static_cast<void>(kRow), _mm512_setzero_ps())...} {}
    // To the first panel, or to the next one.
    void Store(const Product& p, const Target& c, float* y, int64_t panel) {
      y += panel * c.next;
      if (c.accumulate) {
        ((sums[kRow] = _mm512_add_ps(_mm512_loadu_ps(y + kRow * c.stride), sums[kRow])), ...);
      }
      if (c.bias != nullptr) {
        const __m512 bias = _mm512_loadu_ps(c.bias + panel * kColumns);
        ((sums[kRow] = _mm512_add_ps(sums[kRow], bias)), ...);
      }
      if (p.relu) ((sums[kRow] = PositivePart(sums[kRow])), ...);
      (_mm512_storeu_ps(y + kRow * c.stride, sums[kRow]), ...);
    }
  };

  template <size_t... kRow>
  static void Run(std::index_sequence<kRow...>, const Product& p, const float* a, const Panel& b,
                  const Target& c, float* y) {
    Rows<kRow...> rows;
    const float* from = b.data;
    for (int64_t i = 0; i < p.k; ++i) {
      const __m512 row = _mm512_loadu_ps(from);
      ((rows.sums[kRow] = _mm512_fmadd_ps(_mm512_set1_ps(a[kRow * p.a.row]), row, rows.sums[kRow])),
       ...);
      a += p.a.column;
      from += b.stride;
    }
    rows.Store(p, c, y, 0);
  }

  // Loads of B and of A are fewer for each product: of one panel they take as long as it does.
  template <size_t... kRow>
  static void RunPair(std::index_sequence<kRow...>, const Product& p, const float* a,
                      const Panel& b, const Target& c, float* y) {
    Rows<kRow...> rows, next_rows;
    const float* from = b.data;
    for (int64_t i = 0; i < p.k; ++i) {
      const __m512 row = _mm512_loadu_ps(from), next_row = _mm512_loadu_ps(from + b.next);
      const auto add = [&](__m512& sum, __m512& next_sum, int64_t at) {
        const __m512 value = _mm512_set1_ps(a[at * p.a.row]);
        sum = _mm512_fmadd_ps(value, row, sum);
        next_sum = _mm512_fmadd_ps(value, next_row, next_sum);
      };
      (add(rows.sums[kRow], next_rows.sums[kRow], kRow), ...);
      a += p.a.column;
      from += b.stride;
    }
    rows.Store(p, c, y, 0);
    next_rows.Store(p, c, y, 1);
  }
};

// Four floats from each of four places.
inline __m512 LoadQuarters(const float* a, const float* b, const float* c, const float* d) {
  __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(a));
  v = _mm512_mask_broadcast_f32x4(v, 0x00F0, _mm_loadu_ps(b));
  v = _mm512_mask_broadcast_f32x4(v, 0x0F00, _mm_loadu_ps(c));
  return _mm512_mask_broadcast_f32x4(v, 0xF000, _mm_loadu_ps(d));
}

// Four rows of B, whose columns, at most kColumns, lie so far apart: zeros behind the last.
template <bool kWhole>
[[gnu::always_inline]] inline void PackFour(const float* from, int64_t stride, int64_t columns,
                                            float* to) {
  const auto column = [&](int64_t j) {
    return from + (kWhole ? j : std::min(j, columns - 1)) * stride;
  };
  __m512 rows[] = {LoadQuarters(column(0), column(4), column(8), column(12)),
                   LoadQuarters(column(1), column(5), column(9), column(13)),
                   LoadQuarters(column(2), column(6), column(10), column(14)),
                   LoadQuarters(column(3), column(7), column(11), column(15))};
  TransposeFours(rows);
  for (int64_t i = 0; i < 4; ++i) {
    if (!kWhole)
      rows[i] = _mm512_maskz_mov_ps(static_cast<__mmask16>((1U << columns) - 1), rows[i]);
    _mm512_storeu_ps(to + i * kColumns, rows[i]);
  }
}

// As many rows as there are fours of; says how many these are.
template <bool kWhole>
int64_t PackFours(int64_t k, int64_t stride, int64_t columns, const float* from, float* to) {
  int64_t packed = 0;
  for (; packed + 4 <= k; packed += 4)
    PackFour<kWhole>(from + packed, stride, columns, to + packed * kColumns);
  return packed;
}

#pragma GCC pop_options

// From here on for processors that have these; Fits looks whether this one does.
#pragma GCC target("avx2,fma")

// Two registers for each row.
struct Tile {
  static constexpr size_t kRows = 6;

  template <size_t... kRow>
  static void Run(std::index_sequence<kRow...>, const Product& p, const float* a, const Panel& b,
                  const Target& c, float* y) {
    TileRow sums[sizeof...(kRow)];
    const float* from = b.data;
    for (int64_t i = 0; i < p.k; ++i) {
      const __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + kLane);
      (sums[kRow].MultiplyAdd(_mm256_broadcast_ss(a + kRow * p.a.row), low, high), ...);
      a += p.a.column;
      from += b.stride;
    }
    (sums[kRow].Store(y + kRow * c.stride, c.accumulate, c.bias, p.relu), ...);
  }

  // Two panels would want more registers than there are.
  template <size_t... kRow>
  static void RunPair(std::index_sequence<kRow...> rows, const Product& p, const float* a,
                      const Panel& b, const Target& c, float* y) {
    Run(rows, p, a, b, c, y);
    Target next = c;
    if (c.bias != nullptr) next.bias += kColumns;
    Run(rows, p, a, {b.data + b.next, b.stride}, next, y + c.next);
  }
};

constexpr size_t kMostRows = WideTile::kRows;

// A processor's tiles, by their number of rows less one.
struct Tiles {
  using ByRows = std::array<TileFunction, kMostRows>;

  int64_t rows;  // of the tallest
  ByRows single, pair;

  // Calls body(tile, its first row, its rows) for tiles that have m rows together, all about as
  // tall.
  template <typename Body>
  void ForTiles(const ByRows& tiles, int64_t m, const Body& body) const {
    const int64_t count = std::max<int64_t>(1, (m + rows - 1) / rows), least = m / count;
    int64_t taller = m - least * count;
    for (int64_t first = 0; first < m;) {
      const int64_t tall = least + (taller-- > 0 ? 1 : 0);
      body(tiles[static_cast<size_t>(tall - 1)], first, tall);
      first += tall;
    }
  }
};

template <typename Kind, size_t kTall>
void RunTile(const Product& p, const float* a, const Panel& b, const Target& c, float* y) {
  Kind::Run(std::make_index_sequence<kTall>(), p, a, b, c, y);
}

template <typename Kind, size_t kTall>
void RunPairTile(const Product& p, const float* a, const Panel& b, const Target& c, float* y) {
  Kind::RunPair(std::make_index_sequence<kTall>(), p, a, b, c, y);
}

template <typename Kind, size_t... kLess>
constexpr Tiles MakeTiles(std::index_sequence<kLess...>) {
  return {static_cast<int64_t>(Kind::kRows),
          {RunTile<Kind, kLess + 1>...},
          {RunPairTile<Kind, kLess + 1>...}};
}

constexpr Tiles kTiles = MakeTiles<Tile>(std::make_index_sequence<Tile::kRows>());
constexpr Tiles kWideTiles = MakeTiles<WideTile>(std::make_index_sequence<WideTile::kRows>());

std::atomic<const Tiles*>& Chosen() {
  static std::atomic<const Tiles*> chosen(device::MayUse(device::Vectors::kAvx512) ? &kWideTiles
                                                                                   : &kTiles);
  return chosen;
}

const Tiles& OwnTiles() {
  return *Chosen().load(std::memory_order_relaxed);
}

// Eight rows of eight floats, each row `stride` apart, to `to` as columns, kColumns apart.
inline void PackEight(const float* from, int64_t stride, float* to) {
  EightRows rows;
  for (int64_t i = 0; i < kLane; ++i) rows[i] = _mm256_loadu_ps(from + i * stride);
  Transpose(rows);
  for (int64_t i = 0; i < kLane; ++i) _mm256_storeu_ps(to + i * kColumns, rows[i]);
}

// All rows of one panel of C, or of two.
void RunPanels(const Product& p, int64_t panels, const float* x, const Panel& b, const Target& c,
               float* y) {
  const Tiles& tiles = OwnTiles();
  tiles.ForTiles(panels == 2 ? tiles.pair : tiles.single, p.m,
                 [&](TileFunction tile, int64_t row, int64_t) {
                   tile(p, x + row * p.a.row, b, c, y + row * c.stride);
                 });
}

// `count` panels of B from column `first` on: brought together where they do not lie so.
Panel WholePanels(const Product& p, int64_t first, int64_t count, const float* w, float* scratch) {
  if (p.b.column == 1) return {w + first, p.b.row, kColumns};
  float* const packed = scratch + first * p.k;
  for (int64_t i = 0; i < count * kColumns; i += kColumns)
    Pack(p.k, kColumns, p.b, w + (first + i) * p.b.column, packed + i * p.k);
  return {packed, kColumns, kColumns * p.k};
}

// Without a call for each row where it is a vector at least.
inline void CopyRow(const float* from, int64_t columns, float* to) {
  if (columns < kLane) {
    std::copy_n(from, columns, to);
    return;
  }
  const int64_t last = columns - kLane;
  _mm256_storeu_ps(to, _mm256_loadu_ps(from));
  _mm256_storeu_ps(to + last, _mm256_loadu_ps(from + last));
}

// The last columns of C, fewer than a tile has: each tile goes through a buffer.
void RunNarrowPanel(const Product& p, int64_t columns, const float* x, const float* packed,
                    const float* bias, float* y) {
  alignas(64) float buffer[kMostRows * kColumns], offsets[kColumns] = {};
  if (bias != nullptr) std::copy_n(bias, columns, offsets);
  const Panel panel{packed, kColumns};
  const Target through{kColumns, bias != nullptr ? offsets : nullptr, false};
  const Tiles& tiles = OwnTiles();
  tiles.ForTiles(tiles.single, p.m, [&](TileFunction tile, int64_t row, int64_t rows) {
    tile(p, x + row * p.a.row, panel, through, buffer);
    for (int64_t i = 0; i < rows; ++i) CopyRow(buffer + i * kColumns, columns, y + (row + i) * p.n);
  });
}

}  // namespace

bool UseWideTiles(bool wide) {
  if (wide && !device::MayUse(device::Vectors::kAvx512)) return false;
  Chosen().store(wide ? &kWideTiles : &kTiles, std::memory_order_relaxed);
  return true;
}

bool UsesWideTiles() {
  return &OwnTiles() == &kWideTiles;
}

void Pack(int64_t k, int64_t columns, Strides strides, const float* from, float* to) {
  int64_t packed = 0;
  if (strides.row == 1 && UsesWideTiles()) {
    packed = columns == kColumns ? PackFours<true>(k, strides.column, columns, from, to)
                                 : PackFours<false>(k, strides.column, columns, from, to);
  } else if (strides.row == 1 && columns == kColumns) {
    for (; packed + kLane <= k; packed += kLane) {
      PackEight(from + packed, strides.column, to + packed * kColumns);
      PackEight(from + packed + kLane * strides.column, strides.column,
                to + packed * kColumns + kLane);
    }
  }
  for (; packed < k; ++packed) {
    float* row = to + packed * kColumns;
    const float* values = from + packed * strides.row;
    if (strides.column == 1) {
      std::copy_n(values, columns, row);
    } else {
      for (int64_t j = 0; j < columns; ++j) row[j] = values[j * strides.column];
    }
    std::fill(row + columns, row + kColumns, 0.0F);
  }
}

void Product::RunPacked(const float* x, const float* packed, float* y, int64_t stride,
                        bool accumulate, const PanelRange& panels) const {
  for (int64_t panel = 0; panel < panels.count; panel += 2) {
    RunPanels(*this, std::min<int64_t>(2, panels.count - panel), x,
              {packed + panel * panels.b_step, kColumns, panels.b_step},
              {stride, nullptr, accumulate, panels.y_step}, y + panel * panels.y_step);
  }
}

size_t Product::scratch_bytes() const {
  return static_cast<size_t>(panels() * kColumns * k) * sizeof(float);
}

void Product::Run(const float* x, const float* w, const float* bias, float* y, float* scratch,
                  const Afterwards& afterwards) const {
  const int64_t together = panels() >= 2 * device::ThreadCount() ? 2 : 1;
  // A tile's step does about as much as touching four elements, an activation as touching one.
  const int64_t activated = afterwards.activation == Activation::kNone ? 0 : kColumns;
  device::ParallelFor((panels() + together - 1) / together,
                      (together * m * k + 3) / 4 + together * m * activated, [&](int64_t i) {
                        const int64_t first = i * together * kColumns, count = together * kColumns;
                        RunColumns(first, count, x, w, bias, y, scratch);
                        if (afterwards.activation == Activation::kNone) return;
                        Activate(afterwards.activation, {m, std::min(count, n - first), n},
                                 y + first, afterwards.to + first);
                      });
}

void Product::RunAlone(const float* x, const float* w, const float* bias, float* y,
                       float* scratch) const {
  for (int64_t first = 0; first < n; first += 2 * kColumns)
    RunColumns(first, 2 * kColumns, x, w, bias, y, scratch);
}

void Product::RunColumns(int64_t first, int64_t count, const float* x, const float* w,
                         const float* bias, float* y, float* scratch) const {
  const int64_t end = std::min(first + count, n), whole = (end - first) / kColumns;
  if (whole > 0) {
    RunPanels(*this, whole, x, WholePanels(*this, first, whole, w, scratch),
              {n, bias == nullptr ? nullptr : bias + first, false, kColumns}, y + first);
  }
  const int64_t last = first + whole * kColumns;
  if (last == end) return;
  float* packed = scratch + last * k;
  Pack(k, end - last, b, w + last * b.column, packed);
  RunNarrowPanel(*this, end - last, x, packed, bias == nullptr ? nullptr : bias + last, y + last);
}

}  // namespace ringmaster::kernels::vector

#include "runtime/kernels/vector/blocked_product.h"

#include <algorithm>
#include <array>
#include <immintrin.h>
#include <utility>

#include "runtime/device/parallel.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/tile_row.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kColumns = kTileColumns;
constexpr int64_t kRows = 6;
// Of the inner axis at a time: a panel of B is 16 kB then.
constexpr int64_t kInner = 256;
// Rows of A that are packed at a time, up to 120 kB, and columns of B, up to 512 kB.
constexpr int64_t kRowsAtOnce = 120;
constexpr int64_t kColumnsAtOnce = 512;
// Columns that are packed before the first of them is used: of rows of B that lie far apart more
// than a line of the cache is read at once.
constexpr int64_t kPackedTogether = 8 * kColumns;
// A shorter inner axis than this makes few products of a panel: rather than that stay in the cache,
// the result is written along its rows.
constexpr int64_t kShortInner = 64;

// The part of that number, in multiples of `grain` but for the last one.
Range PartOf(int64_t count, int64_t grain, int64_t part, int64_t parts) {
  const int64_t grains = PartsOf(count, grain);
  return {std::min(count, grains * part / parts * grain),
          std::min(count, grains * (part + 1) / parts * grain)};
}

// Where a tile goes, what is added to each of its rows, or null, and what else is done to it.
struct Target {
  float* data;
  int64_t stride;
  const float* bias;
  bool accumulate, relu;
};

// A tile of k steps: kRows floats of A for each, and kColumns of B.
template <size_t... kRow>
void MultiplyTile(std::index_sequence<kRow...>, int64_t k, const float* a, const float* b,
                  const Target& c) {
  TileRow sums[sizeof...(kRow)];
  (_mm_prefetch(c.data + kRow * c.stride, _MM_HINT_T0), ...);
  (_mm_prefetch(c.data + kRow * c.stride + kColumns - 1, _MM_HINT_T0), ...);
#pragma GCC unroll 4
  for (int64_t i = 0; i < k; ++i, a += kRows, b += kColumns) {
    const __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + kLane);
    (sums[kRow].MultiplyAdd(_mm256_broadcast_ss(a + kRow), low, high), ...);
  }
  (sums[kRow].Store(c.data + kRow * c.stride, c.accumulate, c.bias, c.relu), ...);
}

template <size_t kTall>
void MultiplyTall(int64_t k, const float* a, const float* b, const Target& c) {
  MultiplyTile(std::make_index_sequence<kTall>(), k, a, b, c);
}

constexpr std::array kTiles = {MultiplyTall<1>, MultiplyTall<2>, MultiplyTall<3>,
                               MultiplyTall<4>, MultiplyTall<5>, MultiplyTall<6>};

// A tile of the last columns, which are fewer than it has, through a buffer.
void RunNarrowTile(int64_t rows, int64_t columns, int64_t k, const float* a, const float* b,
                   const Target& c) {
  alignas(32) float sums[kRows * kColumns], offsets[kColumns] = {};
  Target through{sums, kColumns, nullptr, c.accumulate, c.relu};
  if (c.bias != nullptr) {
    std::copy_n(c.bias, columns, offsets);
    through.bias = offsets;
  }
  for (int64_t i = 0; i < rows && c.accumulate; ++i) {
    std::copy_n(c.data + i * c.stride, columns, sums + i * kColumns);
    std::fill_n(sums + i * kColumns + columns, kColumns - columns, 0.0F);
  }
  kTiles[static_cast<size_t>(rows - 1)](k, a, b, through);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(sums + i * kColumns, columns, c.data + i * c.stride);
}

// Up to kRows rows of A, kRows floats for each of k steps. Writes two floats behind them.
void PackTall(int64_t k, int64_t rows, Strides strides, const float* from, float* to) {
  if (strides.row == 1) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(rows)), lanes);
    for (int64_t i = 0; i < k; ++i, from += strides.column, to += kRows)
      _mm256_storeu_ps(to, _mm256_maskload_ps(from, mask));
    return;
  }
  // Of fewer rows the last one stands for those that are missing.
  const auto row = [&](int64_t i) { return from + std::min(i, rows - 1) * strides.row; };
  int64_t i = 0;
  for (; strides.column == 1 && i + kLane <= k; i += kLane) {
    EightRows eight;
    for (int64_t j = 0; j < kLane; ++j) eight[j] = _mm256_loadu_ps(row(j) + i);
    Transpose(eight);
    // What a vector has behind its step, the next one writes over.
    for (int64_t j = 0; j < kLane; ++j) _mm256_storeu_ps(to + (i + j) * kRows, eight[j]);
  }
  for (; i < k; ++i) {
    for (int64_t j = 0; j < kRows; ++j) to[i * kRows + j] = row(j)[i * strides.column];
  }
}

// Panels of B where the columns of a row lie side by side.
void PackPanels(int64_t k, int64_t columns, int64_t stride, const float* from, float* to) {
  for (int64_t i = 0; i < k; ++i, from += stride, to += kColumns) {
    for (int64_t j = 0; j < columns; j += kColumns) {
      _mm256_storeu_ps(to + j * k, _mm256_loadu_ps(from + j));
      _mm256_storeu_ps(to + j * k + kLane, _mm256_loadu_ps(from + j + kLane));
    }
  }
}

// The operands of a product, and where its result goes.
struct Operands {
  const float *x, *w, *bias;
  float* y;
};

// A thread's share of the result: some rows of some columns.
class Share {
 public:
  Share(const Product& product, const Operands& operands, Range down, Range across, float* a,
        float* b)
      : p_(product), operands_(operands), down_(down), across_(across), a_(a), b_(b) {}

  void Run() {
    const int64_t parts = PartsOf(p_.k, kInner);
    for (int64_t column = across_.begin; column < across_.end; column += kColumnsAtOnce) {
      columns_ = {column, std::min(column + kColumnsAtOnce, across_.end)};
      for (int64_t part = 0; part < parts; ++part) {
        inner_ = PartOf(p_.k, 1, part, parts);
        for (int64_t row = down_.begin; row < down_.end; row += kRowsAtOnce) {
          rows_ = {row, std::min(row + kRowsAtOnce, down_.end)};
          RunBlock();
        }
      }
    }
  }

 private:
  // Tiles are made of these rows and columns, and of this part of the inner axis.
  void RunBlock() const {
    const bool packs_columns = rows_.begin == down_.begin;
    PackRows();
    if (inner_.size() <= kShortInner) {
      if (packs_columns) PackColumns(columns_);
      ForTiles([&](const Range& rows, const float* a) {
        ForPanels([&](const Range& columns) { RunTile(rows, a, columns); });
      });
      return;
    }
    ForPanels([&](const Range& columns) {
      const int64_t first = columns.begin;
      if (packs_columns && (first - columns_.begin) % kPackedTogether == 0)
        PackColumns({first, std::min(first + kPackedTogether, columns_.end)});
      ForTiles([&](const Range& rows, const float* a) { RunTile(rows, a, columns); });
    });
  }

  // Calls body(rows, where they are packed) for tiles above each other, all about as tall.
  template <typename Body>
  void ForTiles(const Body& body) const {
    const int64_t tiles = PartsOf(rows_.size(), kRows), tall = rows_.size() / tiles,
                  taller = rows_.size() % tiles;
    Range rows{rows_.begin, rows_.begin};
    for (int64_t i = 0; i < tiles; ++i) {
      rows = {rows.end, rows.end + tall + (i < taller ? 1 : 0)};
      body(rows, a_ + i * kRows * inner_.size());
    }
  }

  // Calls body(columns) for panels side by side, of which the last may be narrower.
  template <typename Body>
  void ForPanels(const Body& body) const {
    for (int64_t first = columns_.begin; first < columns_.end; first += kColumns)
      body(Range{first, std::min(first + kColumns, columns_.end)});
  }
  float* PanelOf(int64_t column) const { return b_ + (column - columns_.begin) * inner_.size(); }

  void PackRows() const {
    float* to = a_;
    ForTiles([&](const Range& rows, const float*) {
      PackTall(inner_.size(), rows.size(), p_.a,
               operands_.x + rows.begin * p_.a.row + inner_.begin * p_.a.column, to);
      to += kRows * inner_.size();
    });
  }

  void PackColumns(const Range& columns) const {
    const int64_t k = inner_.size();
    const float* const from = operands_.w + inner_.begin * p_.b.row;
    int64_t column = columns.begin;
    if (p_.b.column == 1) {
      const int64_t whole = columns.size() / kColumns * kColumns;
      PackPanels(k, whole, p_.b.row, from + column, PanelOf(column));
      column += whole;
    }
    for (; column < columns.end; column += kColumns) {
      Pack(k, std::min(kColumns, columns.end - column), p_.b, from + column * p_.b.column,
           PanelOf(column));
    }
  }

  void RunTile(const Range& rows, const float* a, const Range& columns) const {
    const bool is_last = inner_.end == p_.k;
    const Target to{
        .data = operands_.y + rows.begin * p_.n + columns.begin,
        .stride = p_.n,
        .bias = is_last && operands_.bias != nullptr ? operands_.bias + columns.begin : nullptr,
        .accumulate = inner_.begin > 0,
        .relu = is_last && p_.relu};
    const float* const b = PanelOf(columns.begin);
    if (columns.size() == kColumns) {
      kTiles[static_cast<size_t>(rows.size() - 1)](inner_.size(), a, b, to);
    } else {
      RunNarrowTile(rows.size(), columns.size(), inner_.size(), a, b, to);
    }
  }

  const Product& p_;
  const Operands& operands_;
  const Range down_, across_;
  float *const a_, *const b_;  // where rows and columns are packed
  Range rows_{}, columns_{}, inner_{};
};

}  // namespace

// How threads share the result: rows by columns of blocks, one for each thread.
struct BlockedProduct::Grid {
  int64_t down, across;
  // Floats that a thread packs: of A, and of A and B.
  int64_t a_floats, floats;
};

BlockedProduct::Grid BlockedProduct::MakeGrid() const {
  const int64_t threads = device::ThreadCount();
  // A thread packs as many rows of A, and columns of B, as it makes of the result.
  const auto packed = [&](int64_t down) {
    return PartsOf(p_.m, down) + PartsOf(p_.n, threads / down);
  };
  int64_t best = 1;
  for (int64_t down = 2; down <= threads; ++down) {
    if (threads % down == 0 && packed(down) < packed(best)) best = down;
  }
  const int64_t inner = std::min(p_.k, kInner);
  const int64_t rows = std::min(kRowsAtOnce, PartsOf(p_.m, kRows) * kRows),
                columns = std::min(kColumnsAtOnce, PartsOf(p_.n, kColumns) * kColumns);
  constexpr int64_t kLine = 16;  // B's panels begin at a line of the cache
  const int64_t a_floats = PartsOf(rows * inner + kLane, kLine) * kLine;
  return {.down = best,
          .across = threads / best,
          .a_floats = a_floats,
          .floats = a_floats + columns * inner};
}

size_t BlockedProduct::scratch_bytes() const {
  const Grid grid = MakeGrid();
  return static_cast<size_t>(grid.down * grid.across * grid.floats) * sizeof(float);
}

void BlockedProduct::Run(const float* x, const float* w, const float* bias, float* y,
                         float* scratch) const {
  const Grid grid = MakeGrid();
  const Operands operands{x, w, bias, y};
  const int64_t blocks = grid.down * grid.across;
  // A tile's step does about as much as touching four elements.
  const int64_t work = (p_.m * p_.n / (kRows * kColumns) + 1) * 4 * p_.k / blocks;
  device::ParallelFor(blocks, work, [&](int64_t i) {
    float* const own = scratch + i * grid.floats;
    Share(p_, operands, PartOf(p_.m, kRows, i / grid.across, grid.down),
          PartOf(p_.n, kColumns, i % grid.across, grid.across), own, own + grid.a_floats)
        .Run();
  });
}

}  // namespace ringmaster::kernels::vector

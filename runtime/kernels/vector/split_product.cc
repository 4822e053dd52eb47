#include "runtime/kernels/vector/split_product.h"

#include <algorithm>
#include <immintrin.h>

#include "runtime/device/parallel.h"
#include "runtime/device/vectors.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/split_pack.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kHalf = kSplitTileLines, kLineBytes = 64;

// A block of k is all of it, if that is no more than this many steps, or as long as others.
constexpr int64_t kMostSteps = 32, kSteps = 16;
// Steps of strips that are packed at a time: for each thread as many of A as a cache of 2 MB keeps
// beside a strip of B; and more of B than threads need long for.
constexpr int64_t kStepsOfRows = 128, kStepsOfColumns = 2304;

// Of an axis of that length; steps of the inner one are as long.
int64_t Strips(int64_t length) {
  return PartsOf(length, kSplitStrip);
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw")

// The compiler's own functions do not say which memory they read.
struct alignas(64) TileConfig {
  uint8_t palette = 1, first_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void ConfigureTiles() {
  TileConfig config;
  std::fill_n(config.row_bytes, 8, kSplitRowBytes);
  std::fill_n(config.rows, 8, kHalf);
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

void ReleaseTiles() {
  __asm__ volatile("tilerelease" ::: "memory");
}

template <int kTile>
void LoadTile(const char* from) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(kSplitRowBytes), "i"(kTile)
                   : "memory");
}

template <int kTile>
void StoreTile(float* to) {
  constexpr int64_t kStride = kSplitStrip * sizeof(float);
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(kStride), "i"(kTile) : "memory");
}

template <int kTile>
void ClearTile() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

template <int kSum, int kA, int kB>
void MultiplyTiles() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

// Four tiles of C are made of two of A and two of B.
template <int kPart>
void LoadA(const char* step) {
  LoadTile<4>(step + kPart * kSplitPartBytes);
  LoadTile<5>(step + kPart * kSplitPartBytes + kSplitTileBytes);
}

template <int kPart>
void LoadB(const char* step) {
  LoadTile<6>(step + kPart * kSplitPartBytes);
  LoadTile<7>(step + kPart * kSplitPartBytes + kSplitTileBytes);
}

void Multiply() {
  MultiplyTiles<0, 4, 6>();
  MultiplyTiles<1, 4, 7>();
  MultiplyTiles<2, 5, 6>();
  MultiplyTiles<3, 5, 7>();
}

// Pieces of an axis, of at most 32 elements, of which none has such of two groups.
struct Pieces {
  int64_t length;  // of a group

  struct Piece {
    int64_t group, first, count;

    int64_t At(const SplitAxis& axis) const { return group * axis.group + axis.At(first); }
  };
  Piece At(int64_t i) const {
    const int64_t each = Strips(length), first = i % each * kSplitStrip;
    return {i / each, first, std::min(length - first, kSplitStrip)};
  }
};

// Where four tiles of sums go, in rows: added to what is there, with an epilogue and a ReLU, or
// not.
struct Finish {
  const float* sums = nullptr;
  float* to = nullptr;
  int64_t row_step = 0, next_columns = 0;
  int64_t rows = 0, columns = 0;
  Epilogue epilogue;  // of these columns, and of these rows
  bool accumulate = false, relu = false;

  // The next of them.
  void Rows(int64_t count) {
    count = std::min(count, rows);
    rows -= count;
    for (; count > 0; --count, sums += kSplitStrip, to += row_step) {
      for (int64_t half = 0; half < 2; ++half) {
        const __mmask16 mask = FirstOfSixteen(columns - half * kHalf);
        float* const at = to + half * next_columns;
        __m512 v = _mm512_load_ps(sums + half * kHalf);
        if (accumulate) v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, at), v);
        v = Finished(v, mask, half);
        // A maximum would keep the sign of -0, and not what is no number.
        if (relu)
          v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ), v);
        _mm512_mask_storeu_ps(at, mask, v);
      }
      if (epilogue.addend != nullptr) epilogue.addend += row_step;
    }
  }

  __m512 Finished(__m512 v, __mmask16 mask, int64_t half) const {
    if (epilogue.offset != nullptr) {
      const __m512 offset = _mm512_maskz_loadu_ps(mask, epilogue.offset + half * kHalf);
      v = epilogue.slope == nullptr
              ? _mm512_add_ps(v, offset)
              : _mm512_fmadd_ps(v, _mm512_maskz_loadu_ps(mask, epilogue.slope + half * kHalf),
                                offset);
    }
    if (epilogue.addend == nullptr) return v;
    return _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, epilogue.addend + half * next_columns));
  }
};

// Of what is read soon, some lines of the cache at a time.
struct Ahead {
  const char* next;  // null: nothing
  int64_t lines;

  void AskForLines() {
    if (next == nullptr) return;
    for (int64_t i = 0; i < lines; ++i, next += kLineBytes) _mm_prefetch(next, _MM_HINT_T1);
  }
};

// The sums of a strip of A and one of B, as 32 x 32 floats. `before` is finished meanwhile: its
// vectors are ready while the tiles' unit works, and a processor that has used no wide vectors for
// a microsecond takes a third of one to store a tile.
void MultiplyStrips(const char* a, const char* b, int64_t steps, Finish& before, Ahead ahead,
                    float* sums) {
  const int64_t rows = PartsOf(before.rows, steps);
  ClearTile<0>();
  ClearTile<1>();
  ClearTile<2>();
  ClearTile<3>();
  for (int64_t i = 0; i < steps; ++i, a += kSplitStepBytes, b += kSplitStepBytes) {
    // One of each of two products' operands stays for the next.
    LoadB<2>(b);
    LoadA<0>(a);
    Multiply();
    LoadB<1>(b);
    Multiply();
    LoadA<1>(a);
    Multiply();
    before.Rows(rows);
    LoadB<0>(b);
    Multiply();
    LoadA<2>(a);
    Multiply();
    LoadA<0>(a);
    Multiply();
    ahead.AskForLines();
  }
  StoreTile<0>(sums);
  StoreTile<1>(sums + kHalf);
  StoreTile<2>(sums + kHalf * kSplitStrip);
  StoreTile<3>(sums + kHalf * kSplitStrip + kHalf);
}

#pragma GCC pop_options

// A thread's share of `count`.
Range ShareOf(int64_t team, int64_t count) {
  const int64_t teams = device::ThreadCount();
  return {count * team / teams, count * (team + 1) / teams};
}

}  // namespace

// How much is packed at a time.
struct SplitProduct::Blocks {
  explicit Blocks(const SplitProduct& p)
      : all_rows(p.row_groups * Strips(p.m)),
        all_columns(Strips(p.n)),
        all_steps(p.inner_groups * Strips(p.k)),
        steps(all_steps) {
    if (steps > kMostSteps) {
      steps = PartsOf(steps, PartsOf(steps, kSteps));
    }
    const int64_t teams = device::ThreadCount();
    rows_each = std::max<int64_t>(1, kStepsOfRows / steps);
    rows = std::min(all_rows, rows_each * teams);
    shares_columns = rows < all_columns && rows <= rows_each;
    columns = shares_columns ? all_columns : std::min(all_columns, kStepsOfColumns / steps);
    packed_columns = shares_columns ? teams : columns;
  }

  int64_t all_rows, all_columns, all_steps;  // strips of A and of B, and steps of a strip
  int64_t steps;                             // at a time
  int64_t rows_each = 0;                     // strips of A for a thread
  int64_t rows = 0, columns = 0;             // for all of them
  // Of few rows each thread has all in its cache: threads share the columns, and pack a strip of
  // these when they want it. Else they share the rows, and want all columns, packed before.
  bool shares_columns = false;
  int64_t packed_columns = 0;
};

// What is packed now, and where: strips and steps, from the first on.
struct SplitProduct::Block {
  int64_t row, column, step;
  int64_t rows, columns, steps;
  const Blocks& all;
  char *a, *b;

  bool is_last() const { return step + steps == all.all_steps; }

  int64_t strip_bytes() const { return steps * kSplitStepBytes; }
};

bool SplitProduct::Runs() {
  return device::MayUse(device::Vectors::kAmx);
}

bool SplitProduct::Pays(int64_t shortest_inner) const {
  constexpr int64_t kShortest = 64, kLeastWork = int64_t{1} << 22;
  const Blocks blocks(*this);
  const int64_t rows = row_groups * m, inner = inner_groups * k;
  const bool is_long = std::min(rows, n) >= kShortest && inner >= shortest_inner;
  const bool fills_strips =
      2 * rows >= kSplitStrip * blocks.all_rows && 2 * inner >= kSplitStep * blocks.all_steps;
  const bool fills_threads = std::max(blocks.all_rows, blocks.all_columns) >= device::ThreadCount();
  return is_long && rows * n >= kLeastWork / inner && fills_strips && fills_threads;
}

size_t SplitProduct::scratch_bytes() const {
  const Blocks blocks(*this);
  return static_cast<size_t>((blocks.rows + blocks.packed_columns) * blocks.steps *
                             kSplitStepBytes);
}

void SplitProduct::Run(const float* x, const float* w, const Epilogue& epilogue, float* y,
                       void* scratch) const {
  const Blocks blocks(*this);
  const int64_t teams = device::ThreadCount();
  char* const b = static_cast<char*>(scratch);
  char* const a = b + blocks.packed_columns * blocks.steps * kSplitStepBytes;
  for (int64_t step = 0; step < blocks.all_steps; step += blocks.steps) {
    for (int64_t column = 0; column < blocks.all_columns; column += blocks.columns) {
      for (int64_t row = 0; row < blocks.all_rows; row += blocks.rows) {
        const Block block{.row = row,
                          .column = column,
                          .step = step,
                          .rows = std::min(blocks.all_rows - row, blocks.rows),
                          .columns = std::min(blocks.all_columns - column, blocks.columns),
                          .steps = std::min(blocks.all_steps - step, blocks.steps),
                          .all = blocks,
                          .a = a,
                          .b = b};
        constexpr int64_t kStepWork = kSplitStrip * kSplitStrip * kSplitStep / 4;
        const int64_t work = block.rows * block.columns * block.steps * kStepWork / teams;
        device::ParallelFor(teams, work, [&](int64_t team) { PackBlock(block, team, x, w); });
        device::ParallelFor(teams, work,
                            [&](int64_t team) { RunBlock(block, team, w, epilogue, y); });
      }
    }
  }
}

// The strip of A's rows or of B's columns of that number.
void SplitProduct::PackStrip(const Block& block, const float* data, bool is_a, int64_t number,
                             char* to) const {
  const SplitAxis &lines = is_a ? a_rows : b_columns, &inner = is_a ? a_inner : b_inner;
  const Pieces::Piece strip = Pieces{is_a ? m : n}.At(number);
  for (int64_t step = block.step; step < block.step + block.steps; ++step, to += kSplitStepBytes) {
    const Pieces::Piece piece = Pieces{k}.At(step);
    PackSplitStep({data + strip.At(lines) + piece.At(inner), lines, inner}, strip.count,
                  piece.count, is_a, to);
  }
}

void SplitProduct::PackBlock(const Block& block, int64_t team, const float* x,
                             const float* w) const {
  const Range rows = ShareOf(team, block.rows), columns = ShareOf(team, block.columns);
  for (int64_t i = rows.begin; i < rows.end; ++i)
    PackStrip(block, x, true, block.row + i, block.a + i * block.strip_bytes());
  if (block.all.shares_columns || block.row != 0) return;
  for (int64_t i = columns.begin; i < columns.end; ++i)
    PackStrip(block, w, false, block.column + i, block.b + i * block.strip_bytes());
}

void SplitProduct::RunBlock(const Block& block, int64_t team, const float* w,
                            const Epilogue& epilogue, float* y) const {
  const Pieces all_rows{m}, all_columns{n};
  const int64_t steps = block.steps, strip_bytes = block.strip_bytes();
  Range rows{0, block.rows}, columns{0, block.columns};
  Range& shared = block.all.shares_columns ? columns : rows;
  shared = ShareOf(team, shared.end);
  alignas(64) float sums[2][kSplitStrip * kSplitStrip];
  Finish before;
  bool odd = false;
  ConfigureTiles();
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    char* const b = block.b + (block.all.shares_columns ? team : j) * strip_bytes;
    if (block.all.shares_columns) PackStrip(block, w, false, block.column + j, b);
    for (int64_t i = rows.begin; i < rows.end; ++i, odd = !odd) {
      // Of the next strip as much is asked for with each of these.
      const int64_t lines = kSplitStepBytes / kLineBytes / block.all.rows_each,
                    ahead = (i - rows.begin) * steps * lines * kLineBytes;
      const bool asks = !block.all.shares_columns && j + 1 < columns.end && ahead < strip_bytes;
      MultiplyStrips(block.a + i * strip_bytes, b, steps, before,
                     {asks ? b + strip_bytes + ahead : nullptr, lines}, sums[odd]);
      before.Rows(kSplitStrip);
      const Pieces::Piece row = all_rows.At(block.row + i),
                          column = all_columns.At(block.column + j);
      const int64_t place = row.At(c_rows) + column.At(c_columns);
      before = {.sums = sums[odd],
                .to = y + place,
                .row_step = c_rows.step,
                .next_columns = c_columns.sixteen,
                .rows = row.count,
                .columns = column.count,
                .epilogue = block.is_last() ? epilogue.At(column.first, place) : Epilogue{},
                .accumulate = block.step > 0,
                .relu = block.is_last() && relu};
    }
  }
  before.Rows(kSplitStrip);
  ReleaseTiles();
}

}  // namespace ringmaster::kernels::vector

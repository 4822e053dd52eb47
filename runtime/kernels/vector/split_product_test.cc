#include "runtime/kernels/vector/split_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr uint64_t kSeed = 11;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SplitProductTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!SplitProduct::Runs()) GTEST_SKIP() << "this processor has no matrix unit";
  }

  std::vector<float> Draw(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = 2 * tensor::ToUniform(stream_.Next()) - 1;
    return values;
  }
  // Whole numbers of 12 bits and a sign: a product of two fits into 24 bits.
  std::vector<float> DrawWhole(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(stream_.Below(8192)) - 4096;
    return values;
  }
  int64_t Below(uint32_t bound) { return stream_.Below(bound) + 1; }
  SplitProduct Any(int64_t m, int64_t k, int64_t n) {
    const bool a_turned = stream_.Below(2) == 1, b_turned = stream_.Below(2) == 1;
    return {.m = m,
            .k = k,
            .n = n,
            .a_rows = {a_turned ? 1 : k},
            .a_inner = {a_turned ? m : 1},
            .b_inner = {b_turned ? 1 : n},
            .b_columns = {b_turned ? k : 1},
            .c_rows = {n},
            .c_columns = {1}};
  }

  tensor::RandomStream stream_{{.seed = kSeed}};
};

struct Sample {
  SplitProduct product;
  std::vector<float> a, b, bias;

  std::vector<float> Result() const {
    constexpr float kStart = -7;
    // Behind the last element nothing may be written.
    const auto count = static_cast<size_t>(product.row_groups * product.m * product.n);
    std::vector<float> y(count + 1, kStart);
    const size_t bytes = product.scratch_bytes();
    void* const scratch = std::aligned_alloc(64, bytes);
    const Epilogue epilogue{.offset = bias.empty() ? nullptr : bias.data()};
    product.Run(a.data(), b.data(), epilogue, y.data(), scratch);
    std::free(scratch);
    EXPECT_EQ(y.back(), kStart);
    y.pop_back();
    return y;
  }

  float A(int64_t row, int64_t i) const {
    return a[static_cast<size_t>(product.a_rows.At(row) + product.a_inner.At(i))];
  }
  float B(int64_t i, int64_t column) const {
    return b[static_cast<size_t>(product.b_inner.At(i) + product.b_columns.At(column))];
  }
  // And, in `size`, the sum of what is added up without its signs.
  double Exact(int64_t row, int64_t column, double& size) const {
    double sum = bias.empty() ? 0 : bias[static_cast<size_t>(column)];
    size = std::abs(sum);
    for (int64_t i = 0; i < product.k; ++i) {
      const double term = static_cast<double>(A(row, i)) * B(i, column);
      sum += term;
      size += std::abs(term);
    }
    return sum;
  }
};

// Of all sizes, so that strips that are not whole come about, and several blocks of k.
TEST_F(SplitProductTest, IsTheSumOverTheInnerAxisAsExactAsInF32WhereverStripsEnd) {
  for (int round = 0; round < 60; ++round) {
    const int64_t m = Below(100), k = Below(round % 8 == 0 ? 3000 : 200), n = Below(100);
    const Sample sample{Any(m, k, n), Draw(m * k), Draw(k * n), Draw(n)};
    const std::vector<float> result = sample.Result();
    for (int64_t i = 0; i < m * n; ++i) {
      double size = 0;
      const double exact = sample.Exact(i / n, i % n, size);
      // Every step's six products are rounded once each, and what they leave out is 2^-24.
      ASSERT_NEAR(result[static_cast<size_t>(i)], exact, size * 6e-8 * 8)
          << "seed " << kSeed << ", round " << round << ": " << m << " x " << k << " x " << n;
    }
  }
}

TEST_F(SplitProductTest, LosesNoBitOfWholeNumbers) {
  for (int round = 0; round < 20; ++round) {
    const int64_t m = Below(70), n = Below(70);
    const Sample sample{Any(m, 1, n), DrawWhole(m), DrawWhole(n), {}};
    const std::vector<float> result = sample.Result();
    for (int64_t i = 0; i < m * n; ++i) {
      double size = 0;
      ASSERT_EQ(result[static_cast<size_t>(i)], sample.Exact(i / n, i % n, size))
          << "seed " << kSeed << ", round " << round;
    }
  }
}

// What is left out, and what six additions round.
TEST_F(SplitProductTest, IsOffByLittleMoreThanASumOfTwoIs) {
  constexpr int64_t kSide = 64;
  const Sample sample{Any(kSide, 1, kSide), Draw(kSide), Draw(kSide), {}};
  const std::vector<float> result = sample.Result();
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    double size = 0;
    const double exact = sample.Exact(i / kSide, i % kSide, size);
    ASSERT_NEAR(result[static_cast<size_t>(i)], exact, size * 0x1.2p-23) << "seed " << kSeed;
  }
}

TEST_F(SplitProductTest, HasTheSameBitsInEveryRowWhateverIsMultipliedBesideIt) {
  constexpr int64_t kRows = 300, kInner = 1100, kColumns = 40;
  Sample all{Any(kRows, kInner, kColumns), {}, Draw(kInner * kColumns), Draw(kColumns)};
  all.product.a_rows = {kInner};
  all.product.a_inner = {1};
  all.a = Draw(kRows * kInner);
  const std::vector<float> result = all.Result();
  for (const int64_t row : {0, 31, 32, 150, 299}) {
    Sample one = all;
    one.product.m = 1;
    one.a.assign(all.a.begin() + row * kInner, all.a.begin() + (row + 1) * kInner);
    const auto begin = result.begin() + row * kColumns;
    EXPECT_EQ(one.Result(), std::vector<float>(begin, begin + kColumns)) << row;
  }
}

TEST_F(SplitProductTest, KeepsThePositivePartAndWhatIsNoNumber) {
  Sample sample{Any(40, 1100, 40), Draw(40 * 1100), Draw(1100 * 40), Draw(40)};
  const std::vector<float> plain = sample.Result();
  sample.product.relu = true;
  const std::vector<float> positive = sample.Result();
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(positive[i], std::max(plain[i], 0.0F));
  sample.a[static_cast<size_t>(sample.product.a_rows.At(5))] = std::nanf("");
  const std::vector<float> with_nan = sample.Result();
  for (size_t i = 0; i < with_nan.size(); ++i) ASSERT_EQ(std::isnan(with_nan[i]), i / 40 == 5) << i;
}

TEST_F(SplitProductTest, LosesNothingThatIsNotFinite) {
  constexpr int64_t kSide = 33, kInner = 40;
  const float all_ones = std::bit_cast<float>(0x7FFFFFFFU);
  for (const float odd : {std::nanf(""), -std::nanf(""), all_ones, -all_ones, kInfinity, -kInfinity,
                          std::numeric_limits<float>::max()}) {
    for (const bool in_a : {false, true}) {
      Sample sample{Any(kSide, kInner, kSide), Draw(kSide * kInner), Draw(kInner * kSide), {}};
      for (float& value : in_a ? sample.b : sample.a) value += 2;
      const SplitProduct& p = sample.product;
      const int64_t at = in_a ? p.a_rows.At(kSide - 1) + p.a_inner.At(kInner - 1)
                              : p.b_columns.At(kSide - 1) + p.b_inner.At(kInner - 1);
      (in_a ? sample.a : sample.b)[static_cast<size_t>(at)] = odd;
      const std::vector<float> result = sample.Result();
      for (int64_t i = 0; i < kSide * kSide; ++i) {
        const bool is_last = (in_a ? i / kSide : i % kSide) == kSide - 1;
        ASSERT_EQ(std::isfinite(result[static_cast<size_t>(i)]), !is_last) << odd << ", " << i;
      }
    }
  }
}

// Several blocks of rows or of columns, each of several blocks of the inner axis or of one.
TEST_F(SplitProductTest, TakesLargeMatricesInBlocks) {
  struct Case {
    int64_t m, k, n;
  };
  for (const auto& [m, k, n] :
       {Case{1400, 1100, 33}, Case{600, 1024, 70}, Case{270, 1024, 2400}, Case{70, 1024, 2400}}) {
    const Sample sample{Any(m, k, n), Draw(m * k), Draw(k * n), Draw(n)};
    const std::vector<float> result = sample.Result();
    for (int64_t i = 0; i < m * n; i += 97) {
      double size = 0;
      const double exact = sample.Exact(i / n, i % n, size);
      ASSERT_NEAR(result[static_cast<size_t>(i)], exact, size * 6e-8 * 8)
          << "seed " << kSeed << ": " << m << " x " << k << " x " << n << ", " << i;
    }
  }
}

// A copy of some floats that ends where memory does.
class AtTheEnd {
 public:
  explicit AtTheEnd(const std::vector<float>& values)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        bytes_((values.size() * sizeof(float) + page_ - 1) / page_ * page_ + page_),
        begin_(static_cast<char*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        data_(reinterpret_cast<float*>(begin_ + bytes_ - page_) - values.size()) {
    EXPECT_EQ(mprotect(begin_ + bytes_ - page_, page_, PROT_NONE), 0);
    std::ranges::copy(values, data_);
  }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() { munmap(begin_, bytes_); }

  float* data() const { return data_; }

 private:
  const size_t page_, bytes_;
  char* const begin_;
  float* const data_;
};

TEST_F(SplitProductTest, TouchesNothingBehindItsOperands) {
  for (int round = 0; round < 16; ++round) {
    const Sample sample{Any(33, 37, 45), Draw(33 * 37), Draw(37 * 45), Draw(45)};
    const std::vector<float> expected = sample.Result();
    // Which change nothing.
    const AtTheEnd slope(std::vector<float>(sample.bias.size(), 1)),
        addend(std::vector<float>(expected.size(), 0));
    const AtTheEnd a(sample.a), b(sample.b), bias(sample.bias), y(expected);
    void* const scratch = std::aligned_alloc(64, sample.product.scratch_bytes());
    sample.product.Run(a.data(), b.data(), {slope.data(), bias.data(), addend.data()}, y.data(),
                       scratch);
    std::free(scratch);
    ASSERT_TRUE(std::ranges::equal(expected, std::span(y.data(), expected.size())));
  }
}

// As images lie in blocks of 16 channels.
TEST_F(SplitProductTest, TakesAndMakesBlocksOfSixteen) {
  constexpr int64_t kPixels = 50, kFrom = 48, kTo = 64;
  const Sample rows{{.m = kPixels,
                     .k = kFrom,
                     .n = kTo,
                     .a_rows = {kFrom},
                     .a_inner = {1},
                     .b_inner = {1},
                     .b_columns = {kFrom},
                     .c_rows = {kTo},
                     .c_columns = {1}},
                    Draw(kPixels * kFrom),
                    Draw(kFrom * kTo),
                    {}};
  Sample blocks = rows;
  blocks.product.a_rows = {16};
  blocks.product.a_inner = {1, kPixels * 16};
  blocks.product.c_rows = {16};
  blocks.product.c_columns = {1, kPixels * 16};
  for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
    for (int64_t channel = 0; channel < kFrom; ++channel) {
      blocks.a[static_cast<size_t>(blocks.product.a_rows.At(pixel) +
                                   blocks.product.a_inner.At(channel))] = rows.A(pixel, channel);
    }
  }
  const std::vector<float> in_rows = rows.Result(), in_blocks = blocks.Result();
  for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
    for (int64_t channel = 0; channel < kTo; ++channel) {
      ASSERT_EQ(in_blocks[static_cast<size_t>(blocks.product.c_rows.At(pixel) +
                                              blocks.product.c_columns.At(channel))],
                in_rows[static_cast<size_t>(pixel * kTo + channel)])
          << pixel << ", " << channel;
    }
  }
}

// As samples of a batch are rows of one product, or what another is summed over.
TEST_F(SplitProductTest, GoesOverGroupsThatLieApart) {
  constexpr int64_t kGroups = 20, kLength = 37, kOther = 50, kLast = 33;
  Sample rows{{.m = kLength,
               .k = kOther,
               .n = kLast,
               .a_rows = {kOther, 16 * kOther, kLength * kOther},
               .a_inner = {1},
               .b_inner = {kLast},
               .b_columns = {1},
               .c_rows = {kLast, 16 * kLast, kLength * kLast},
               .c_columns = {1},
               .row_groups = kGroups},
              Draw(kGroups * kLength * kOther),
              Draw(kOther * kLast),
              Draw(kLast)};
  Sample one = rows;
  one.product.m = kGroups * kLength;
  one.product.row_groups = 1;
  EXPECT_EQ(rows.Result(), one.Result());

  Sample inner{{.m = kOther,
                .k = kLength,
                .n = kLast,
                .a_rows = {1},
                .a_inner = {kOther, 16 * kOther, kLength * kOther},
                .b_inner = {kLast, 16 * kLast, kLength * kLast},
                .b_columns = {1},
                .c_rows = {kLast},
                .c_columns = {1},
                .inner_groups = kGroups},
               rows.a,
               Draw(kGroups * kLength * kLast),
               {}};
  const std::vector<float> result = inner.Result();
  inner.product.k = kGroups * kLength;
  for (int64_t i = 0; i < kOther * kLast; ++i) {
    double size = 0;
    ASSERT_NEAR(result[static_cast<size_t>(i)], inner.Exact(i / kLast, i % kLast, size), 2e-5);
  }
}

}  // namespace
}  // namespace ringmaster::kernels::vector

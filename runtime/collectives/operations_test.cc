// Every operation of every type against a plain reference, in place and out of place.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;
using testing::Wires;

constexpr size_t kSizes[] = {0, 1, 7, 1000};
constexpr size_t kSegmentBytes = 1024;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMany = 50'000;
#else
constexpr size_t kMany = 1'000'000;
#endif
constexpr Reduction kReductions[] = {Reduction::kSum, Reduction::kAverage, Reduction::kMin,
                                     Reduction::kMax, Reduction::kProduct};

template <typename T>
T Make(double value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

// So small that every type holds every result of up to 32 ranks exactly, or wraps in a known way: a
// sum is at most 224, and a product at most 2^7 * 3^2, in whatever order it is made.
int64_t Value(Reduction reduction, int rank, size_t i) {
  const size_t mixed = i * 7 + static_cast<size_t>(rank) * 3 + i / 8;
  if (reduction != Reduction::kProduct) return static_cast<int64_t>(mixed % 8);
  if (mixed % 16 == 3) return 3;
  return mixed % 5 < 1 ? 2 : 1;
}

double Expected(Reduction reduction, int world, size_t i) {
  int64_t result = Value(reduction, 0, i);
  for (int rank = 1; rank < world; ++rank) {
    const int64_t value = Value(reduction, rank, i);
    switch (reduction) {
      case Reduction::kSum:
      case Reduction::kAverage:
        result += value;
        break;
      case Reduction::kMin:
        result = std::min(result, value);
        break;
      case Reduction::kMax:
        result = std::max(result, value);
        break;
      case Reduction::kProduct:
        result *= value;
    }
  }
  return reduction == Reduction::kAverage ? static_cast<double>(result) / world
                                          : static_cast<double>(result);
}

// Long arrays repeat themselves, as making each of their values would take longer than the
// operations. A prime number: no two pieces or slices of them are alike.
constexpr size_t kPeriod = 1009;

template <typename T, typename ValueAt>
std::vector<T> Repeat(size_t size, const ValueAt& value_at) {
  std::vector<T> values(size);
  for (size_t i = 0; i < std::min(size, kPeriod); ++i)
    values[i] = Make<T>(static_cast<double>(value_at(i)));
  for (size_t i = kPeriod; i < size; i += kPeriod)
    std::copy_n(values.begin(), std::min(kPeriod, size - i), &values[i]);
  return values;
}

template <typename T>
std::vector<T> Input(Reduction reduction, int rank, size_t size) {
  return Repeat<T>(size, [&](size_t i) { return Value(reduction, rank, i); });
}

template <typename T>
std::vector<T> Result(Reduction reduction, int world, size_t size) {
  return Repeat<T>(size, [&](size_t i) { return Expected(reduction, world, i); });
}

template <typename T>
::testing::AssertionResult Same(std::span<const T> got, std::span<const T> want) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << "another length";
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size_bytes()) == 0)
    return ::testing::AssertionSuccess();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0)
      return ::testing::AssertionFailure() << "element " << i << " of " << got.size();
  }
  return ::testing::AssertionSuccess();
}
template <typename T>
::testing::AssertionResult Same(const std::vector<T>& got, const std::vector<T>& want) {
  return Same(std::span<const T>(got), std::span<const T>(want));
}

// Lengths of the ranks' parts of `size` elements: as equal as they can be, and unequal, most of
// them 0.
std::array<std::vector<size_t>, 2> Parts(int world, size_t size) {
  std::vector<size_t> equal;
  for (int rank = 0; rank < world; ++rank) equal.push_back(SliceOf(size, world, rank).count);
  std::vector<size_t> unequal;
  size_t left = size;
  for (int rank = 0; rank < world - 1; ++rank) {
    unequal.push_back(rank % 2 == 0 ? 0 : std::min(left, size / 3));
    left -= unequal.back();
  }
  unequal.push_back(left);
  return {equal, unequal};
}

template <typename T>
void CheckReduceScatter(Communicator& comm, Reduction reduction, const std::vector<size_t>& counts,
                        const std::vector<T>& in, const std::vector<T>& want) {
  const Piece part = PartsOf(counts)[static_cast<size_t>(comm.rank())];
  const auto of_part = [&](const std::vector<T>& all) {
    return std::span<const T>(all).subspan(part.offset, part.count);
  };
  std::vector<T> mine(part.count);
  ASSERT_TRUE(comm.ReduceScatter(reduction, in, counts, mine, "s").ok()) << comm.status();
  ASSERT_TRUE(Same(std::span<const T>(mine), of_part(want)));
  std::vector<T> out = in;
  const std::span<T> inside = std::span(out).subspan(part.offset, part.count);
  ASSERT_TRUE(comm.ReduceScatter(reduction, out, counts, inside, "s").ok()) << comm.status();
  ASSERT_TRUE(Same(of_part(out), of_part(want)));
}

template <typename T>
void CheckReductions(Communicator& comm, Reduction reduction, size_t size) {
  const std::vector<T> in = Input<T>(reduction, comm.rank(), size);
  const std::vector<T> want = Result<T>(reduction, comm.world(), size);
  std::vector<T> out(size);
  ASSERT_TRUE(comm.Allreduce(reduction, in, out, "a").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));
  out = in;
  ASSERT_TRUE(comm.Allreduce(reduction, out, out, "a").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));

  for (const std::vector<size_t>& counts : Parts(comm.world(), size))
    CheckReduceScatter(comm, reduction, counts, in, want);

  const int root = comm.world() - 1;
  const bool is_root = comm.rank() == root;
  out.assign(is_root ? size : 0, T{});
  ASSERT_TRUE(comm.Reduce(reduction, root, in, out, "r").ok()) << comm.status();
  if (is_root) {
    ASSERT_TRUE(Same(out, want));
  }
  out = in;
  ASSERT_TRUE(comm.Reduce(reduction, 0, out, out, "r").ok()) << comm.status();
  ASSERT_TRUE(Same(out, comm.rank() == 0 ? want : in));
}

// Each rank has its part of `all`.
template <typename T>
void CheckMovesOfParts(Communicator& comm, const std::vector<size_t>& counts,
                       const std::vector<T>& all) {
  const Piece part = PartsOf(counts)[static_cast<size_t>(comm.rank())];
  const auto inside = [&](std::vector<T>& of) {
    return std::span(of).subspan(part.offset, part.count);
  };
  const int root = (comm.world() - 1) / 2;
  const bool is_root = comm.rank() == root;
  std::vector<T> whole = all;
  const std::vector<T> mine(inside(whole).begin(), inside(whole).end());
  std::vector<T> only_mine(all.size());
  std::ranges::copy(mine, inside(only_mine).begin());

  std::vector<T> out(all.size());
  ASSERT_TRUE(comm.Allgather(mine, counts, out, "g").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));
  out = only_mine;
  ASSERT_TRUE(comm.Allgather(inside(out), counts, out, "g").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));

  out.assign(is_root ? all.size() : 0, T{});
  ASSERT_TRUE(comm.Gather(root, mine, counts, out, "t").ok()) << comm.status();
  if (is_root) {
    ASSERT_TRUE(Same(out, all));
  }
  out = only_mine;
  ASSERT_TRUE(comm.Gather(root, inside(out), counts, out, "t").ok()) << comm.status();
  ASSERT_TRUE(Same(out, is_root ? all : only_mine));

  out.assign(part.count, T{});
  ASSERT_TRUE(comm.Scatter(root, is_root ? all : out, counts, out, "s").ok()) << comm.status();
  ASSERT_TRUE(Same(out, mine));
  out = is_root ? all : std::vector<T>(all.size());
  ASSERT_TRUE(comm.Scatter(root, out, counts, inside(out), "s").ok()) << comm.status();
  ASSERT_TRUE(Same(out, is_root ? all : only_mine));
}

template <typename T>
void CheckMoves(Communicator& comm, size_t size) {
  constexpr Reduction kAny = Reduction::kSum;
  const std::vector<T> all = Input<T>(kAny, 1, size);
  const int root = (comm.world() - 1) / 2;
  std::vector<T> out = comm.rank() == root ? all : std::vector<T>(size);
  ASSERT_TRUE(comm.Broadcast(root, out, "b").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));
  for (const std::vector<size_t>& counts : Parts(comm.world(), size))
    CheckMovesOfParts(comm, counts, all);

  if (comm.world() == 1) return;
  const int next = (comm.rank() + 1) % comm.world();
  const int previous = (comm.rank() + comm.world() - 1) % comm.world();
  const std::vector<T> sent = Input<T>(kAny, comm.rank(), size);
  out.assign(size, T{});
  ASSERT_TRUE(comm.SendReceive(next, sent, previous, out, "p").ok()) << comm.status();
  ASSERT_TRUE(Same(out, Input<T>(kAny, previous, size)));

  // One way, from every other rank to the next.
  if (comm.rank() % 2 == 0 && next > comm.rank()) {
    ASSERT_TRUE(comm.Send(next, sent, "o").ok()) << comm.status();
  } else if (comm.rank() % 2 == 1) {
    out.assign(size, T{});
    ASSERT_TRUE(comm.Receive(previous, out, "o").ok()) << comm.status();
    ASSERT_TRUE(Same(out, Input<T>(kAny, previous, size)));
  }
  ASSERT_TRUE(comm.Barrier("e").ok()) << comm.status();
}

template <typename T>
void CheckReductionsAndMoves(Communicator& comm, size_t size) {
  for (const Reduction reduction : kReductions) {
    SCOPED_TRACE(NameOf(reduction));
    CheckReductions<T>(comm, reduction, size);
  }
  CheckMoves<T>(comm, size);
}

// Rank a sends count(a, b) elements to rank b.
template <typename T, typename Count>
void CheckAllToAllOf(Communicator& comm, const Count& count, bool in_place) {
  const auto value = [](int from, int to, size_t i) {
    return Make<T>(static_cast<double>((from * 5 + to * 3 + static_cast<int>(i % 16)) % 64));
  };
  std::vector<size_t> send;
  std::vector<size_t> receive;
  std::vector<T> in;
  std::vector<T> want;
  for (int peer = 0; peer < comm.world(); ++peer) {
    send.push_back(count(comm.rank(), peer));
    receive.push_back(count(peer, comm.rank()));
    for (size_t i = 0; i < send.back(); ++i) in.push_back(value(comm.rank(), peer, i));
    for (size_t i = 0; i < receive.back(); ++i) want.push_back(value(peer, comm.rank(), i));
  }
  std::vector<T> apart(want.size());
  std::vector<T>& out = in_place ? in : apart;
  ASSERT_TRUE(comm.AllToAll(in, send, out, receive, "x").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));
}

template <typename T>
void CheckAllToAll(Communicator& comm, size_t size) {
  const auto unequal = [&](int from, int to) {
    return to % 2 == 0 ? size : static_cast<size_t>(from + 1);
  };
  CheckAllToAllOf<T>(comm, unequal, /*in_place=*/false);
  // As many come as go.
  const auto between = [&](int from, int to) { return (from + to) % 2 == 0 ? size : 1; };
  CheckAllToAllOf<T>(comm, between, /*in_place=*/true);
}

template <typename Body>
void ForEachType(const Body& body) {
  body(uint8_t{});
  body(int32_t{});
  body(int64_t{});
  body(Float16{});
  body(BFloat16{});
  body(float{});
  body(double{});
}

class OperationsTest : public ::testing::TestWithParam<std::tuple<int, Wires>> {
 protected:
  OperationsTest() : group_(std::get<0>(GetParam()), std::get<1>(GetParam())) {
    group_.options.segment_bytes = kSegmentBytes;
  }
  Group group_;
};

INSTANTIATE_TEST_SUITE_P(Worlds, OperationsTest,
                         ::testing::Combine(::testing::Range(1, 9),
                                            ::testing::ValuesIn(testing::kAllWires)),
                         [](const auto& info) {
                           return testing::NameOf(std::get<1>(info.param)) +
                                  std::to_string(std::get<0>(info.param));
                         });

TEST_P(OperationsTest, EveryReductionOfEveryTypeIsTheReferences) {
  group_.Run([](Communicator& comm) {
    for (const Reduction reduction : kReductions) {
      for (const size_t size : kSizes) {
        ForEachType([&]<typename T>(T) {
          SCOPED_TRACE(std::string(NameOf(reduction)) + " " + NameOf(ElementTypeOf<T>()));
          CheckReductions<T>(comm, reduction, size);
        });
      }
    }
  });
}

TEST_P(OperationsTest, AllreduceOfManyBytesGoesAroundTheRing) {
  group_.Run([](Communicator& comm) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kMin}) {
      ForEachType([&]<typename T>(T) {
        constexpr size_t kLarge = 9001;
        std::vector<T> data = Input<T>(reduction, comm.rank(), kLarge);
        ASSERT_TRUE(comm.Allreduce(reduction, data, data, "a").ok()) << comm.status();
        ASSERT_TRUE(Same(data, Result<T>(reduction, comm.world(), kLarge)));
      });
    }
  });
}

TEST_P(OperationsTest, EveryMoveOfEveryTypeIsTheReferences) {
  group_.Run([](Communicator& comm) {
    for (const size_t size : kSizes) {
      ForEachType([&]<typename T>(T) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        CheckMoves<T>(comm, size);
        CheckAllToAll<T>(comm, size);
      });
    }
  });
}

class ForcedAlgorithmTest : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {};

constexpr Algorithm kForced[] = {
    Algorithm::kRing,    Algorithm::kDirect, Algorithm::kDoubling,   Algorithm::kHalvingDoubling,
    Algorithm::kOneShot, Algorithm::kTree,   Algorithm::kDoubleTree, Algorithm::kTwoLevel};

std::string NameWithoutSigns(Algorithm algorithm) {
  std::string name = NameOf(algorithm);
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

std::string NameOfForced(const ::testing::TestParamInfo<std::tuple<Algorithm, int>>& info) {
  return NameWithoutSigns(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ForcedAlgorithmTest,
                         ::testing::Combine(::testing::ValuesIn(kForced),
                                            ::testing::Values(2, 3, 4, 7)),
                         NameOfForced);

TEST_P(ForcedAlgorithmTest, EveryReductionAndBroadcastOfEveryTypeIsTheReferences) {
  const auto [algorithm, world] = GetParam();
  Group group(world);
  group.options.segment_bytes = kSegmentBytes;
  group.options.algorithm = algorithm;
  group.Run([](Communicator& comm) {
    // Two nodes that take turns, for what goes over two levels.
    ASSERT_TRUE(comm.Fit("node " + std::to_string(comm.rank() % 2)).ok()) << comm.status();
    for (const size_t size : {1, 7, 1000, 5003}) {
      SCOPED_TRACE(size);
      ForEachType([&]<typename T>(T) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        CheckReductionsAndMoves<T>(comm, size);
      });
    }
  });
}

class ForcedAlgorithmOverTcpTest : public ForcedAlgorithmTest {};

INSTANTIATE_TEST_SUITE_P(Algorithms, ForcedAlgorithmOverTcpTest,
                         ::testing::Combine(::testing::ValuesIn(kForced),
                                            ::testing::Values(2, 3, 5, 8, 9, 24)),
                         NameOfForced);

TEST_P(ForcedAlgorithmOverTcpTest, EveryReductionAndBroadcastIsTheReferences) {
  const auto [algorithm, world] = GetParam();
  Group group(world, Wires::kTcp);
  group.options.segment_bytes = kSegmentBytes;
  group.options.algorithm = algorithm;
  group.Run([](Communicator& comm) {
    ASSERT_TRUE(comm.Fit("node " + std::to_string(comm.rank() % 3)).ok()) << comm.status();
    CheckReductionsAndMoves<float>(comm, 7);
    CheckReductionsAndMoves<int64_t>(comm, 1000);
  });
}

// Over memory alone, which is the cheapest; the worlds above go over the others too.
class ManyRanksTest : public ::testing::TestWithParam<int> {
 protected:
  Group group_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Worlds, ManyRanksTest,
                         ::testing::Values(9, 10, 11, 12, 13, 14, 15, 16, 24, 32),
                         ::testing::PrintToStringParamName());

TEST_P(ManyRanksTest, EveryOperationOfEveryTypeIsTheReferences) {
  group_.options.segment_bytes = kSegmentBytes;
  group_.Run([](Communicator& comm) {
    for (const size_t size : kSizes) {
      SCOPED_TRACE(size);
      ForEachType([&]<typename T>(T) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        CheckReductionsAndMoves<T>(comm, size);
        CheckAllToAll<T>(comm, size);
      });
    }
  });
}

class ManyElementsTest : public ManyRanksTest {};

INSTANTIATE_TEST_SUITE_P(Worlds, ManyElementsTest,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                           24, 32),
                         ::testing::PrintToStringParamName());

// Every type at some worlds, and at all where `make soak` asks for it, which takes minutes. Else at
// the others every operation of one type, another one for each reduction and each world, so that
// all types have their turn there.
TEST_P(ManyElementsTest, EveryOperationIsTheReferences) {
  constexpr int kTypes = 7;
  const int world = GetParam();
  const bool all_types = world == 2 || world == 3 || world == 4 || world == 8 ||
                         std::getenv("RINGMASTER_TEST_EVERY_TYPE") != nullptr;
  group_.Run([&](Communicator& comm) {
    int number = 0;
    ForEachType([&]<typename T>(T) {
      SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
      const int type = number++;
      int turn = world;
      const auto has_turn = [&] { return all_types || turn++ % kTypes == type; };
      for (const Reduction reduction : kReductions) {
        SCOPED_TRACE(NameOf(reduction));
        if (has_turn()) CheckReductions<T>(comm, reduction, kMany);
      }
      if (!has_turn()) return;
      CheckMoves<T>(comm, kMany);
      CheckAllToAll<T>(comm, kMany / static_cast<size_t>(world));
    });
  });
}

// Through every algorithm, as each has its own places where it adds.
class OperationsRangeTest : public ::testing::TestWithParam<Algorithm> {};

INSTANTIATE_TEST_SUITE_P(Algorithms, OperationsRangeTest, ::testing::ValuesIn(kForced),
                         [](const auto& info) { return NameWithoutSigns(info.param); });

TEST_P(OperationsRangeTest, AnAverageOfTheLargestOrTheSmallestNumbersIsThemselves) {
  for (const int world : {2, 3, 5}) {
    Group group(world);
    group.options.algorithm = GetParam();
    group.Run([](Communicator& comm) {
      const auto check = [&]<typename T>(T extreme) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        for (const size_t count : {size_t{1}, size_t{9001}}) {
          const std::vector<T> in(count, extreme);
          std::vector<T> out(count);
          ASSERT_TRUE(comm.Allreduce(Reduction::kAverage, in, out, "a").ok()) << comm.status();
          ASSERT_TRUE(Same(out, in));
          for (const std::vector<size_t>& counts : Parts(comm.world(), count)) {
            std::vector<T> mine(counts[static_cast<size_t>(comm.rank())]);
            ASSERT_TRUE(comm.ReduceScatter(Reduction::kAverage, in, counts, mine, "s").ok());
            ASSERT_TRUE(Same(mine, std::vector<T>(mine.size(), extreme)));
          }
          ASSERT_TRUE(comm.Reduce(Reduction::kAverage, 0, in, out, "r").ok());
          ASSERT_TRUE(Same(out, in));
        }
      };
      check(0x1p127f);
      check(0x1p1023);
      check(ToBFloat16(0x1p127f));
      check(ToFloat16(60'000));
      check(ToFloat16(0x1p-24f));  // the smallest that there is: halved it would be none
    });
  }
}

}  // namespace
}  // namespace ringmaster::collectives

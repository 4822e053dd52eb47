// Every operation of every type against a plain reference, in place and out of place.
#include <barrier>
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

// Lengths of the ranks' parts of `size` elements, unequal and sometimes 0.
std::vector<size_t> Parts(int world, size_t size) {
  std::vector<size_t> counts;
  size_t left = size;
  for (int rank = 0; rank < world - 1; ++rank) {
    counts.push_back(rank % 2 == 0 ? 0 : std::min(left, size / 3));
    left -= counts.back();
  }
  counts.push_back(left);
  return counts;
}

template <typename T>
void CheckReductions(Communicator& comm, Reduction reduction, size_t size) {
  const std::vector<T> in = Input<T>(reduction, comm.rank(), size);
  const std::vector<T> want = Result<T>(reduction, comm.world(), size);
  const size_t me = static_cast<size_t>(comm.rank());
  std::vector<T> out(size);
  ASSERT_TRUE(comm.Allreduce(reduction, in, out, "a").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));
  out = in;
  ASSERT_TRUE(comm.Allreduce(reduction, out, out, "a").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));

  const std::vector<size_t> counts = Parts(comm.world(), size);
  const Piece part = PartsOf(counts)[me];
  const auto of_part = [&](const std::vector<T>& all) {
    return std::span<const T>(all).subspan(part.offset, part.count);
  };
  std::vector<T> mine(part.count);
  ASSERT_TRUE(comm.ReduceScatter(reduction, in, counts, mine, "s").ok()) << comm.status();
  ASSERT_TRUE(Same(std::span<const T>(mine), of_part(want)));
  out = in;
  const std::span<T> inside = std::span(out).subspan(part.offset, part.count);
  ASSERT_TRUE(comm.ReduceScatter(reduction, out, counts, inside, "s").ok()) << comm.status();
  ASSERT_TRUE(Same(of_part(out), of_part(want)));

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

template <typename T>
void CheckMoves(Communicator& comm, size_t size) {
  constexpr Reduction kAny = Reduction::kSum;
  const std::vector<size_t> counts = Parts(comm.world(), size);
  const std::vector<Piece> parts = PartsOf(counts);
  const Piece part = parts[static_cast<size_t>(comm.rank())];
  const std::vector<T> all = Input<T>(kAny, 1, size);  // rank r's part of it is what rank r has
  const std::vector<T> mine(all.begin() + static_cast<ptrdiff_t>(part.offset),
                            all.begin() + static_cast<ptrdiff_t>(part.offset + part.count));
  const auto inside = [&](std::vector<T>& of) {
    return std::span(of).subspan(part.offset, part.count);
  };
  const int root = (comm.world() - 1) / 2;
  const bool is_root = comm.rank() == root;

  std::vector<T> out = is_root ? all : std::vector<T>(size);
  ASSERT_TRUE(comm.Broadcast(root, out, "b").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));

  out.assign(size, T{});
  ASSERT_TRUE(comm.Allgather(mine, counts, out, "g").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));
  out.assign(size, T{});
  std::copy(mine.begin(), mine.end(), inside(out).begin());
  ASSERT_TRUE(comm.Allgather(inside(out), counts, out, "g").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));

  out.assign(is_root ? size : 0, T{});
  ASSERT_TRUE(comm.Gather(root, mine, counts, out, "t").ok()) << comm.status();
  if (is_root) {
    ASSERT_TRUE(Same(out, all));
  }

  out.assign(part.count, T{});
  ASSERT_TRUE(comm.Scatter(root, is_root ? all : out, counts, out, "s").ok()) << comm.status();
  ASSERT_TRUE(Same(out, mine));

  if (comm.world() == 1) return;
  const int next = (comm.rank() + 1) % comm.world();
  const int previous = (comm.rank() + comm.world() - 1) % comm.world();
  const std::vector<T> sent = Input<T>(kAny, comm.rank(), size);
  out.assign(size, T{});
  ASSERT_TRUE(comm.SendReceive(next, sent, previous, out, "p").ok()) << comm.status();
  ASSERT_TRUE(Same(out, Input<T>(kAny, previous, size)));
}

// Rank a sends b % 2 == 0 ? a + 1 : size elements to rank b.
template <typename T>
void CheckAllToAll(Communicator& comm, size_t size) {
  const auto count = [&](int from, int to) {
    return to % 2 == 0 ? size : static_cast<size_t>(from + 1);
  };
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
  std::vector<T> out(want.size());
  ASSERT_TRUE(comm.AllToAll(in, send, out, receive, "x").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));
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
        for (const Reduction reduction : kReductions) {
          SCOPED_TRACE(NameOf(reduction));
          CheckReductions<T>(comm, reduction, size);
        }
        CheckMoves<T>(comm, size);
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

// Every type at some worlds. At the others every operation of one type, another one for each
// reduction and each world, so that all types have their turn there: more would take minutes.
TEST_P(ManyElementsTest, EveryOperationIsTheReferences) {
  constexpr int kTypes = 7;
  const int world = GetParam();
  const bool all_types = world == 2 || world == 3 || world == 4 || world == 8;
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

TEST(OperationsRangeTest, AnAverageOfTheLargestNumbersIsThemselves) {
  for (const int world : {2, 3, 5}) {
    Group group(world);
    group.Run([](Communicator& comm) {
      const auto check = [&]<typename T>(T largest) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        for (const size_t count : {size_t{1}, size_t{9001}}) {
          const std::vector<T> in(count, largest);
          std::vector<T> out(count);
          ASSERT_TRUE(comm.Allreduce(Reduction::kAverage, in, out, "a").ok()) << comm.status();
          ASSERT_TRUE(Same(out, in));
          const std::vector<size_t> counts = Parts(comm.world(), count);
          std::vector<T> mine(counts[static_cast<size_t>(comm.rank())]);
          ASSERT_TRUE(comm.ReduceScatter(Reduction::kAverage, in, counts, mine, "s").ok());
          ASSERT_TRUE(Same(mine, std::vector<T>(mine.size(), largest)));
          ASSERT_TRUE(comm.Reduce(Reduction::kAverage, 0, in, out, "r").ok());
          ASSERT_TRUE(Same(out, in));
        }
      };
      check(0x1p127f);
      check(0x1p1023);
      check(ToBFloat16(0x1p127f));
      check(ToFloat16(0x1p15f));
    });
  }
}

// Two ranks that disagree about one part, of which only one knows that it is there.
TEST(OperationsErrorTest, LengthsOfAnAllToAllThatDisagreeAreNamed) {
  for (const size_t surplus : {size_t{1}, size_t{256}, size_t{1000}}) {
    Group group(3);
    group.options.segment_bytes = kSegmentBytes;
    std::barrier everybody(3);
    group.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("meet").ok());
      everybody.arrive_and_wait();
      const std::vector<size_t> counts = {256, 0, 0};
      std::vector<size_t> receive(3, comm.rank() == 0 ? 256 : 0);
      std::vector<size_t> send = counts;
      if (comm.rank() == 2) send[1] = surplus;
      const std::vector<float> in(256 + send[1]);
      std::vector<float> out(comm.rank() == 0 ? 3 * 256 : 0);
      const absl::Status status = comm.AllToAll(in, send, out, receive, "exchange");
      everybody.arrive_and_wait();
      if (comm.rank() == 0 && status.ok()) return;  // it agrees with both, and may be through
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_NE(Message(status).find("\"exchange\""), std::string::npos) << status;
    });
  }
}

TEST(OperationsErrorTest, WrongArgumentsAreNamedAndDoNotFailTheRound) {
  Group group(2);
  group.Run([](Communicator& comm) {
    std::vector<float> four(4);
    std::vector<float> two(2);
    std::vector<int32_t> whole(4);
    const std::vector<size_t> halves = {2, 2};
    const std::vector<size_t> thirds = {1, 1, 2};
    const auto refused = [&](const absl::Status& status, const std::string& words) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(Message(status).find(words), std::string::npos) << status;
    };
    refused(comm.Allreduce(Reduction::kSum, four, whole, "x"),
            "x: the input is of float32, the result of int32");
    refused(comm.ReduceScatter(Reduction::kSum, four, thirds, two, "x"),
            "the number of parts is 3");
    refused(comm.ReduceScatter(Reduction::kSum, four, halves, four, "x"), "this rank's part is 4");
    refused(comm.Reduce(Reduction::kSum, 2, four, four, "x"), "root 2 is not in a world of 2");
    refused(comm.Gather(-1, two, halves, four, "x"), "root -1");
    refused(comm.Scatter(comm.rank(), two, halves, two, "x"), "the parts together is 2");
    refused(comm.AllToAll(four, thirds, four, halves, "x"), "the number of parts is 3");
    const std::vector<size_t> wrapping = {2, ~size_t{0}};
    const std::vector<size_t> around = {~size_t{0}, 2};
    refused(comm.Gather(0, two, comm.rank() == 0 ? wrapping : around, two, "x"), "too long");
    EXPECT_TRUE(comm.Barrier("still alive").ok());
  });
}

}  // namespace
}  // namespace ringmaster::collectives

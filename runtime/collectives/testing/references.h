// Every operation of a communicator against a plain reference, in place and out of place, for any
// type. All ranks of it call a check together, and each looks at what it gets, as tests do.
//
//   group.Run([](Communicator& comm) {
//     ForEachType([&]<typename T>(T) { CheckReductionsAndMoves<T>(comm, /*size=*/1000); });
//   });
//
// The numbers are such that every order in which they may be combined has the same result.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_REFERENCES_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_REFERENCES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives::testing {

inline constexpr Reduction kReductions[] = {Reduction::kSum, Reduction::kAverage, Reduction::kMin,
                                            Reduction::kMax, Reduction::kProduct};

template <typename T>
T NumberAs(double value) {
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
inline int64_t InputAt(Reduction reduction, int rank, size_t i) {
  const size_t mixed = i * 7 + static_cast<size_t>(rank) * 3 + i / 8;
  if (reduction != Reduction::kProduct) return static_cast<int64_t>(mixed % 8);
  if (mixed % 16 == 3) return 3;
  return mixed % 5 < 1 ? 2 : 1;
}

inline double ResultAt(Reduction reduction, int world, size_t i) {
  int64_t result = InputAt(reduction, 0, i);
  for (int rank = 1; rank < world; ++rank) {
    const int64_t value = InputAt(reduction, rank, i);
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
inline constexpr size_t kPeriod = 1009;

template <typename T, typename ValueAt>
std::vector<T> Repeat(size_t size, const ValueAt& value_at) {
  std::vector<T> values(size);
  for (size_t i = 0; i < std::min(size, kPeriod); ++i)
    values[i] = NumberAs<T>(static_cast<double>(value_at(i)));
  for (size_t i = kPeriod; i < size; i += kPeriod)
    std::copy_n(values.begin(), std::min(kPeriod, size - i), &values[i]);
  return values;
}

template <typename T>
std::vector<T> InputOf(Reduction reduction, int rank, size_t size) {
  return Repeat<T>(size, [&](size_t i) { return InputAt(reduction, rank, i); });
}

template <typename T>
std::vector<T> ResultOf(Reduction reduction, int world, size_t size) {
  return Repeat<T>(size, [&](size_t i) { return ResultAt(reduction, world, i); });
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
inline std::array<std::vector<size_t>, 2> PartCounts(int world, size_t size) {
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
  const std::vector<T> in = InputOf<T>(reduction, comm.rank(), size);
  const std::vector<T> want = ResultOf<T>(reduction, comm.world(), size);
  std::vector<T> out(size);
  ASSERT_TRUE(comm.Allreduce(reduction, in, out, "a").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));
  out = in;
  ASSERT_TRUE(comm.Allreduce(reduction, out, out, "a").ok()) << comm.status();
  ASSERT_TRUE(Same(out, want));

  for (const std::vector<size_t>& counts : PartCounts(comm.world(), size))
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
  const std::vector<T> all = InputOf<T>(kAny, 1, size);
  const int root = (comm.world() - 1) / 2;
  std::vector<T> out = comm.rank() == root ? all : std::vector<T>(size);
  ASSERT_TRUE(comm.Broadcast(root, out, "b").ok()) << comm.status();
  ASSERT_TRUE(Same(out, all));
  for (const std::vector<size_t>& counts : PartCounts(comm.world(), size))
    CheckMovesOfParts(comm, counts, all);

  if (comm.world() == 1) return;
  const int next = (comm.rank() + 1) % comm.world();
  const int previous = (comm.rank() + comm.world() - 1) % comm.world();
  const std::vector<T> sent = InputOf<T>(kAny, comm.rank(), size);
  out.assign(size, T{});
  ASSERT_TRUE(comm.SendReceive(next, sent, previous, out, "p").ok()) << comm.status();
  ASSERT_TRUE(Same(out, InputOf<T>(kAny, previous, size)));

  // One way, from every other rank to the next.
  if (comm.rank() % 2 == 0 && next > comm.rank()) {
    ASSERT_TRUE(comm.Send(next, sent, "o").ok()) << comm.status();
  } else if (comm.rank() % 2 == 1) {
    out.assign(size, T{});
    ASSERT_TRUE(comm.Receive(previous, out, "o").ok()) << comm.status();
    ASSERT_TRUE(Same(out, InputOf<T>(kAny, previous, size)));
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
    return NumberAs<T>(static_cast<double>((from * 5 + to * 3 + static_cast<int>(i % 16)) % 64));
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

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_REFERENCES_H_

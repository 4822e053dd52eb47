// Plans are carried out here on the memory of imagined ranks, by what NCCL's functions do.
#include "runtime/collectives/nccl/plan.h"

#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives::nccl {
namespace {

using Numbers = std::vector<int32_t>;
using Kind = Call::Kind;

constexpr Combiner kSumOfNumbers{Reduction::kSum, ElementType::kI32};

// All ranks' plans of one operation, carried out together.
class Machine {
 public:
  Machine(std::vector<std::vector<Step>> plans, size_t slot_bytes)
      : plans_(std::move(plans)), slots_(plans_.size(), std::vector<std::byte>(slot_bytes)) {}

  // Collectives of a step meet in its calls by their places, messages by their pairs of ranks.
  void RunCollectives() {
    for (const auto& plan : plans_) ASSERT_EQ(plan.size(), plans_[0].size());
    for (size_t step = 0; step < plans_[0].size(); ++step) {
      for (size_t rank = 0; rank < plans_.size(); ++rank) In(rank, step);
      for (size_t i = 0; i < plans_[0][step].calls.size(); ++i) Collective(step, i);
      for (size_t rank = 0; rank < plans_.size(); ++rank) Out(rank, step);
    }
  }

  // A rank goes on with its next step only where all messages of the one before have met: who is
  // left waiting hangs, as he would in NCCL.
  void RunMessages() {
    std::vector<size_t> next(plans_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < plans_.size(); ++rank) {
        if (sent_[rank] == next[rank] && next[rank] < plans_[rank].size())
          Send(rank, sent_[rank]++);
      }
      for (size_t rank = 0; rank < plans_.size(); ++rank) {
        if (next[rank] == plans_[rank].size() || !Receive(rank, next[rank])) continue;
        Out(rank, next[rank]++);
        moved = true;
      }
    }
    for (size_t rank = 0; rank < plans_.size(); ++rank)
      EXPECT_EQ(next[rank], plans_[rank].size()) << "rank " << rank << " hangs";
    for (const auto& [pair, messages] : wires_) EXPECT_TRUE(messages.empty());
  }

 private:
  std::byte* At(size_t rank, size_t at, size_t bytes) {
    EXPECT_LE(at + bytes, slots_[rank].size()) << "outside of the slot";
    return slots_[rank].data() + at;
  }
  void In(size_t rank, size_t step) {
    for (const auto& [from, at, bytes] : plans_[rank][step].uploads)
      std::memcpy(At(rank, at, bytes), from, bytes);
  }
  void Out(size_t rank, size_t step) {
    for (const auto& [to, at, bytes] : plans_[rank][step].downloads)
      std::memcpy(to, At(rank, at, bytes), bytes);
  }

  void Collective(size_t step, size_t i) {
    const Call& first = plans_[0][step].calls[i];
    const size_t world = plans_.size();
    const size_t bytes = first.count * SizeOf(first.combiner.type);
    std::vector<std::byte> all;  // what the ranks read, one behind another
    const size_t each = first.kind == Kind::kReduceScatter ? world * bytes : bytes;
    for (size_t rank = 0; rank < world; ++rank) {
      const Call& call = plans_[rank][step].calls[i];
      ASSERT_EQ(call.kind, first.kind);
      ASSERT_EQ(call.count, first.count);
      ASSERT_EQ(call.peer, first.peer);
      const std::byte* const from = At(rank, call.at, each);
      all.insert(all.end(), from, from + each);
    }
    const auto part = [&](size_t rank) { return all.data() + rank * each; };
    std::vector<std::byte> sum(part(0), part(0) + each);
    const bool combines = first.kind == Kind::kAllreduce || first.kind == Kind::kReduce ||
                          first.kind == Kind::kReduceScatter;
    for (size_t rank = 1; combines && rank < world; ++rank)
      first.combiner(sum.data(), sum.data(), part(rank), each / SizeOf(first.combiner.type));
    for (size_t rank = 0; rank < world; ++rank) {
      const Call& call = plans_[rank][step].calls[i];
      const bool is_peer = static_cast<size_t>(call.peer) == rank;
      switch (call.kind) {
        case Kind::kAllreduce:
          std::memcpy(At(rank, call.at, bytes), sum.data(), bytes);
          break;
        case Kind::kReduce:
          if (is_peer) std::memcpy(At(rank, call.at, bytes), sum.data(), bytes);
          break;
        case Kind::kReduceScatter:
          std::memcpy(At(rank, call.into, bytes), sum.data() + rank * bytes, bytes);
          break;
        case Kind::kBroadcast:
          std::memcpy(At(rank, call.at, bytes), part(static_cast<size_t>(call.peer)), bytes);
          break;
        case Kind::kAllgather:
          std::memcpy(At(rank, call.into, all.size()), all.data(), all.size());
          break;
        default:
          FAIL() << "a message among collectives";
      }
    }
  }

  void Send(size_t rank, size_t step) {
    In(rank, step);
    for (const Call& call : plans_[rank][step].calls) {
      if (call.kind != Kind::kSend) continue;
      const std::byte* const from = At(rank, call.at, call.count);
      wires_[{rank, static_cast<size_t>(call.peer)}].emplace_back(from, from + call.count);
    }
  }
  bool Receive(size_t rank, size_t step) {
    const auto& calls = plans_[rank][step].calls;
    for (const Call& call : calls) {
      if (call.kind == Kind::kReceive && wires_[{static_cast<size_t>(call.peer), rank}].empty())
        return false;
    }
    for (const Call& call : calls) {
      if (call.kind != Kind::kReceive) continue;
      auto& wire = wires_[{static_cast<size_t>(call.peer), rank}];
      EXPECT_EQ(wire.front().size(), call.count) << "a message meets one of another length";
      std::memcpy(At(rank, call.at, call.count), wire.front().data(),
                  std::min(call.count, wire.front().size()));
      wire.pop_front();
    }
    return true;
  }

  const std::vector<std::vector<Step>> plans_;
  std::vector<std::vector<std::byte>> slots_;
  std::vector<size_t> sent_ = std::vector<size_t>(plans_.size(), 0);  // steps, by rank
  std::map<std::pair<size_t, size_t>, std::deque<std::vector<std::byte>>> wires_;
};

// Worlds and lengths that leave rests, in a slot that most arrays do not fit into.
class NcclPlanTest : public ::testing::TestWithParam<int> {
 protected:
  Numbers Random(size_t count) {
    Numbers numbers(count);
    for (int32_t& number : numbers) number = static_cast<int32_t>(random_() % 1000);
    return numbers;
  }
  std::vector<Numbers> RandomArrays(size_t count) {
    std::vector<Numbers> arrays;
    for (int rank = 0; rank < world_; ++rank) arrays.push_back(Random(count));
    return arrays;
  }
  std::vector<size_t> RandomCounts(bool equal) {
    std::vector<size_t> counts(static_cast<size_t>(world_), random_() % 2000);
    for (size_t& count : counts) {
      if (!equal) count = random_() % 4 == 0 ? 0 : random_() % 2000;
    }
    return counts;
  }
  Numbers Sum(const std::vector<Numbers>& arrays) {
    Numbers sum(arrays[0].size(), 0);
    for (const Numbers& array : arrays) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += array[i];
    }
    return sum;
  }
  template <typename PlanOf>
  void RunCollective(const PlanOf& plan_of) {
    std::vector<std::vector<Step>> plans;
    for (int rank = 0; rank < world_; ++rank) plans.push_back(plan_of(rank));
    Machine(std::move(plans), kSlotBytes).RunCollectives();
  }

  static constexpr size_t kSlotBytes = 4096;
  const int world_ = GetParam();
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
};

INSTANTIATE_TEST_SUITE_P(Worlds, NcclPlanTest, ::testing::Values(1, 2, 3, 5, 8));

TEST_P(NcclPlanTest, AllreducesIntoTheInputAndElsewhere) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  for (const size_t count : {0, 1, 1024, 1025, 5000}) {
    for (const bool in_place : {false, true}) {
      std::vector<Numbers> in = RandomArrays(count);
      std::vector<Numbers> out(in.size(), Numbers(count));
      const Numbers sum = Sum(in);
      RunCollective([&](int rank) {
        Numbers& mine = in[static_cast<size_t>(rank)];
        Numbers& result = in_place ? mine : out[static_cast<size_t>(rank)];
        return PlanAllreduce(kSumOfNumbers, mine, result, kSlotBytes);
      });
      for (const Numbers& result : in_place ? in : out) EXPECT_EQ(result, sum);
    }
  }
}

TEST_P(NcclPlanTest, ReducesToTheRootAlone) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  const int root = world_ - 1;
  std::vector<Numbers> in = RandomArrays(3000);
  Numbers out(3000);
  RunCollective([&](int rank) {
    const Elements result = rank == root ? Elements(out) : Elements(ElementType::kI32, {});
    return PlanReduce(kSumOfNumbers, rank, root, in[static_cast<size_t>(rank)], result, kSlotBytes);
  });
  EXPECT_EQ(out, Sum(in));
}

TEST_P(NcclPlanTest, BroadcastsWhatTheRootHas) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  std::vector<Numbers> data = RandomArrays(3000);
  const Numbers want = data[0];
  RunCollective([&](int rank) {
    return PlanBroadcast(rank, 0, data[static_cast<size_t>(rank)], kSlotBytes);
  });
  for (const Numbers& got : data) EXPECT_EQ(got, want);
}

TEST_P(NcclPlanTest, GathersEqualAndUnequalParts) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  for (const bool equal : {true, false}) {
    const std::vector<size_t> counts = RandomCounts(equal);
    std::vector<Numbers> mine;
    Numbers want;
    for (const size_t count : counts) {
      mine.push_back(Random(count));
      want.insert(want.end(), mine.back().begin(), mine.back().end());
    }
    std::vector<Numbers> out(counts.size(), Numbers(want.size()));
    RunCollective([&](int rank) {
      const auto r = static_cast<size_t>(rank);
      return PlanAllgather(rank, mine[r], counts, out[r], kSlotBytes);
    });
    for (const Numbers& got : out) EXPECT_EQ(got, want);
  }
}

TEST_P(NcclPlanTest, ScattersSumsOfEqualAndUnequalPartsIntoTheInputAndElsewhere) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  for (const bool equal : {true, false}) {
    for (const bool in_place : {false, true}) {
      const std::vector<size_t> counts = RandomCounts(equal);
      const auto parts = PartsOf(counts);
      std::vector<Numbers> in =
          RandomArrays(std::accumulate(counts.begin(), counts.end(), size_t{0}));
      const Numbers sum = Sum(in);
      std::vector<Numbers> memory;
      std::vector<Elements> out;
      for (const size_t count : counts) memory.emplace_back(count);
      for (size_t r = 0; r < counts.size(); ++r) {
        out.push_back(in_place ? Elements(in[r]).Slice(parts[r].offset, parts[r].count)
                               : Elements(memory[r]));
      }
      RunCollective([&](int rank) {
        const auto r = static_cast<size_t>(rank);
        return PlanReduceScatter(kSumOfNumbers, rank, in[r], counts, out[r], kSlotBytes);
      });
      for (size_t r = 0; r < counts.size(); ++r) {
        const size_t bytes = counts[r] * sizeof(int32_t);
        EXPECT_TRUE(bytes == 0 ||
                    std::memcmp(out[r].data(), sum.data() + parts[r].offset, bytes) == 0);
      }
    }
  }
}

// Who has many messages and who has one must cut those that they share alike.
TEST_P(NcclPlanTest, MessagesOfAnyLengthsMeet) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  const auto world = static_cast<size_t>(world_);
  std::vector<std::vector<Numbers>> sent(world, std::vector<Numbers>(world));
  std::vector<std::vector<Numbers>> got = sent;
  std::vector<Exchange> exchanges(world);
  for (size_t from = 0; from < world; ++from) {
    for (size_t to = 0; to < world; ++to) {
      if (from == to || random_() % 3 == 0) continue;
      sent[from][to] = Random(random_() % 3 == 0 ? 0 : random_() % 3000);
      got[from][to].resize(sent[from][to].size());
      exchanges[from].sends.push_back(
          {static_cast<int>(to), std::as_bytes(std::span(sent[from][to]))});
      exchanges[to].receives.push_back(
          {static_cast<int>(from), std::as_writable_bytes(std::span(got[from][to]))});
    }
  }
  std::vector<std::vector<Step>> plans;
  for (Exchange& exchange : exchanges) {
    exchange.among_all = true;
    exchange.most_messages = 2 * world;
    plans.push_back(PlanExchange(exchange, 512 * world));
  }
  Machine(std::move(plans), 512 * world).RunMessages();
  EXPECT_EQ(got, sent);
}

TEST_P(NcclPlanTest, NoStepReadsFromTheHostWhatAnEarlierOneWrites) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  const std::vector<size_t> counts = RandomCounts(false);
  const auto r = static_cast<size_t>(random_() % static_cast<unsigned>(world_));
  Numbers array = Random(std::accumulate(counts.begin(), counts.end(), size_t{0}) + 1);
  const Elements all(array.data(), array.size() - 1);
  const Elements mine = all.Slice(PartsOf(counts)[r].offset, counts[r]);
  const int rank = static_cast<int>(r);
  for (const auto& plan : {PlanAllreduce(kSumOfNumbers, all, all, kSlotBytes),
                           PlanReduceScatter(kSumOfNumbers, rank, all, counts, mine, kSlotBytes),
                           PlanAllgather(rank, mine, counts, all, kSlotBytes)}) {
    std::vector<std::pair<const std::byte*, const std::byte*>> written;
    for (const Step& step : plan) {
      for (const auto& [from, at, bytes] : step.uploads) {
        for (const auto& [begin, end] : written)
          EXPECT_TRUE(from + bytes <= begin || end <= from) << "read after it was written";
      }
      for (const auto& [to, at, bytes] : step.downloads) written.emplace_back(to, to + bytes);
    }
  }
}

}  // namespace
}  // namespace ringmaster::collectives::nccl

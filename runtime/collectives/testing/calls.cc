#include "runtime/collectives/testing/calls.h"

#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/collectives/compression/one_bit.h"
#include "runtime/collectives/compression/top_k.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/reduce.h"
#include "runtime/collectives/training/adasum.h"
#include "runtime/collectives/training/join_group.h"

namespace ringmaster::collectives::testing {
namespace {

constexpr int kRoot = 1;
constexpr float kUnset = -1;

using Numbers = std::vector<float>;

// Whole numbers, so that every order of addition gives the same sum.
float ValueOf(int rank, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 64);
}

Numbers Values(int rank, size_t count) {
  Numbers values(count);
  for (size_t i = 0; i < count; ++i) values[i] = ValueOf(rank, i);
  return values;
}

Numbers SumOf(const std::vector<int>& ranks, size_t count) {
  Numbers sum(count);
  for (const int rank : ranks) {
    for (size_t i = 0; i < count; ++i) sum[i] += ValueOf(rank, i);
  }
  return sum;
}

std::vector<int> Everybody(int world) {
  std::vector<int> ranks(static_cast<size_t>(world));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Parts of unequal length, one after another, and what rank `rank` puts into its own.
std::vector<size_t> Parts(int world, size_t count) {
  std::vector<size_t> parts;
  size_t left = count;
  for (int rank = 1; rank < world; ++rank) {
    parts.push_back(rank == 2 ? 0 : count / static_cast<size_t>(world + rank));
    left -= parts.back();
  }
  parts.push_back(left);
  return parts;
}
Numbers PartOf(int rank, int world, size_t count) {
  return Values(rank, Parts(world, count)[static_cast<size_t>(rank)]);
}
Numbers PartsTogether(int world, size_t count) {
  Numbers all;
  for (const int rank : Everybody(world)) {
    const Numbers part = PartOf(rank, world, count);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// `status`, or what was got instead of `want`.
absl::Status Expect(const absl::Status& status, const Numbers& got, const Numbers& want) {
  if (!status.ok() || got == want) return status;
  size_t at = 0;
  while (at < got.size() && at < want.size() && got[at] == want[at]) ++at;
  return absl::InternalError(fmt::format("wrong numbers from element {} on", at));
}

absl::Status Allreduce(Communicator& comm, const std::string& name, size_t count) {
  Numbers out(count, kUnset);
  const absl::Status status =
      comm.Allreduce(Reduction::kSum, Values(comm.rank(), count), out, name);
  return Expect(status, out, SumOf(Everybody(comm.world()), count));
}

// Two nodes. Of as many ranks each where there are four, of which one has memory within where wires
// are mixed; else of two thirds and one third, so that some ranks have nobody between the nodes.
NodeMap NodesOf(int world) {
  std::vector<std::string> machines;
  for (const int rank : Everybody(world)) {
    const bool is_first = world == 4 ? rank % 3 == 0 : rank % 3 != 2;
    machines.push_back(is_first ? "a" : "b");
  }
  return NodeMap(machines);
}
Method TwoLevels(const NodeMap& nodes, Algorithm between = Algorithm::kDoubling) {
  return {Algorithm::kTwoLevel, between, kCallSegmentBytes, &nodes};
}

absl::Status TwoLevelAllreduce(Communicator& comm, const std::string& name, Algorithm between,
                               size_t count) {
  Operation operation;
  operation.kind = OperationKind::kAllreduce;
  operation.name = name;
  const NodeMap nodes = NodesOf(comm.world());
  Numbers data = Values(comm.rank(), count);
  const absl::Status status = comm.Run(operation, [&](Transport& transport) {
    return collectives::Allreduce(transport, TwoLevels(nodes, between), Reduction::kSum, data,
                                  data);
  });
  return Expect(status, data, SumOf(Everybody(comm.world()), count));
}

absl::Status TwoLevelBroadcast(Communicator& comm, const std::string& name, size_t count) {
  Operation operation;
  operation.kind = OperationKind::kBroadcast;
  operation.name = name;
  const NodeMap nodes = NodesOf(comm.world());
  Numbers data = comm.rank() == kRoot ? Values(9, count) : Numbers(count);
  const absl::Status status = comm.Run(operation, [&](Transport& transport) {
    return collectives::Broadcast(transport, TwoLevels(nodes), kRoot, data);
  });
  return Expect(status, data, Values(9, count));
}

absl::Status Reduce(Communicator& comm, const std::string& name, size_t count) {
  Numbers out(count, kUnset);
  const absl::Status status =
      comm.Reduce(Reduction::kSum, kRoot, Values(comm.rank(), count), out, name);
  return Expect(
      status, out,
      comm.rank() == kRoot ? SumOf(Everybody(comm.world()), count) : Numbers(count, kUnset));
}

absl::Status Broadcast(Communicator& comm, const std::string& name, size_t count) {
  Numbers data = comm.rank() == kRoot ? Values(9, count) : Numbers(count);
  return Expect(comm.Broadcast(kRoot, data, name), data, Values(9, count));
}

absl::Status OrderedReduce(Communicator& comm, const std::string& name, size_t count) {
  OrderedSum<float> sum(comm.world(), count);
  RM_RETURN_IF_ERROR(sum.Add(comm.rank(), Values(comm.rank(), count)));
  Numbers out(count);
  return Expect(sum.Reduce(comm, out, name), out, SumOf(Everybody(comm.world()), count));
}

// One shard less than ranks, so that the last has none and is served.
absl::Status OrderedReduceOfBusy(Communicator& comm, const std::string& name, size_t count) {
  const int shards = comm.world() - 1;
  OrderedSum<float> sum(shards, count);
  if (comm.rank() < shards) RM_RETURN_IF_ERROR(sum.Add(comm.rank(), Values(comm.rank(), count)));
  Numbers out(count);
  return Expect(sum.Reduce(comm, out, name), out, SumOf(Everybody(shards), count));
}

absl::Status ReduceScatter(Communicator& comm, const std::string& name, size_t count) {
  const std::vector<size_t> parts = Parts(comm.world(), count);
  const auto mine = static_cast<size_t>(comm.rank());
  Numbers out(parts[mine]);
  const absl::Status status =
      comm.ReduceScatter(Reduction::kSum, Values(comm.rank(), count), parts, out, name);
  const Numbers sum = SumOf(Everybody(comm.world()), count);
  const auto begin = static_cast<ptrdiff_t>(
      std::accumulate(parts.begin(), parts.begin() + comm.rank(), size_t{0}));
  return Expect(
      status, out,
      Numbers(sum.begin() + begin, sum.begin() + begin + static_cast<ptrdiff_t>(parts[mine])));
}

absl::Status Allgather(Communicator& comm, const std::string& name, size_t count) {
  Numbers out(count);
  return Expect(comm.Allgather(PartOf(comm.rank(), comm.world(), count), Parts(comm.world(), count),
                               out, name),
                out, PartsTogether(comm.world(), count));
}

absl::Status AllgatherBytes(Communicator& comm, const std::string& name, size_t count) {
  const size_t more = count * 3 / 5;  // than the rank before has
  const std::string mine(more * static_cast<size_t>(comm.rank()),
                         static_cast<char>('a' + comm.rank()));
  const auto all = comm.AllgatherBytes(std::as_bytes(std::span(mine)), name);
  RM_RETURN_IF_ERROR(all.status());
  const int last = comm.world() - 1;
  const bool right =
      all->size() == static_cast<size_t>(comm.world()) &&
      (*all)[static_cast<size_t>(comm.rank())] == mine &&
      all->back() == std::string(more * static_cast<size_t>(last), static_cast<char>('a' + last));
  return right ? absl::OkStatus() : absl::InternalError("wrong bytes");
}

absl::Status Gather(Communicator& comm, const std::string& name, size_t count) {
  Numbers out(count, kUnset);
  const absl::Status status = comm.Gather(kRoot, PartOf(comm.rank(), comm.world(), count),
                                          Parts(comm.world(), count), out, name);
  return Expect(status, out,
                comm.rank() == kRoot ? PartsTogether(comm.world(), count) : Numbers(count, kUnset));
}

absl::Status Scatter(Communicator& comm, const std::string& name, size_t count) {
  Numbers mine(Parts(comm.world(), count)[static_cast<size_t>(comm.rank())]);
  return Expect(comm.Scatter(kRoot, PartsTogether(comm.world(), count), Parts(comm.world(), count),
                             mine, name),
                mine, PartOf(comm.rank(), comm.world(), count));
}

absl::Status AllToAll(Communicator& comm, const std::string& name, size_t count) {
  // From each to each, those of rank `from` for `to` being Values(world * from + to).
  const size_t each = count * 9 / 50;
  const std::vector<size_t> counts(static_cast<size_t>(comm.world()), each);
  Numbers in;
  Numbers want;
  for (const int rank : Everybody(comm.world())) {
    const Numbers to = Values(comm.world() * comm.rank() + rank, each);
    const Numbers from = Values(comm.world() * rank + comm.rank(), each);
    in.insert(in.end(), to.begin(), to.end());
    want.insert(want.end(), from.begin(), from.end());
  }
  Numbers out(in.size());
  return Expect(comm.AllToAll(in, counts, out, counts, name), out, want);
}

// Even ranks to the next odd one, and those to the even one after them; the last of an odd number
// to the first.
absl::Status SendAndReceive(Communicator& comm, const std::string& name, size_t count) {
  const int rank = comm.rank();
  const int next = (rank + 1) % comm.world();
  const int previous = (rank + comm.world() - 1) % comm.world();
  Numbers got(count);
  if (rank % 2 == 0) RM_RETURN_IF_ERROR(comm.Send(next, Values(rank, count), name));
  RM_RETURN_IF_ERROR(comm.Receive(previous, got, name));
  if (rank % 2 == 1) RM_RETURN_IF_ERROR(comm.Send(next, Values(rank, count), name));
  return Expect(absl::OkStatus(), got, Values(previous, count));
}

absl::Status SendReceive(Communicator& comm, const std::string& name, size_t count) {
  const int rank = comm.rank();
  const int next = (rank + 1) % comm.world();
  const int previous = (rank + comm.world() - 1) % comm.world();
  Numbers got(count);
  const absl::Status status = comm.SendReceive(next, Values(rank, count), previous, got, name);
  return Expect(status, got, Values(previous, count));
}

// With everything sent, which is the plain sum.
absl::Status SumOfTopK(Communicator& comm, const std::string& name, size_t count) {
  TopKSum sum(count, 1);
  Numbers out(count, kUnset);
  const absl::Status status = sum.Reduce(comm, Values(comm.rank(), count), out, name);
  return Expect(status, out, SumOf(Everybody(comm.world()), count));
}

// Of values of one magnitude, which a bit tells wholly.
absl::Status SumOfOneBit(Communicator& comm, const std::string& name, size_t count) {
  const auto value = [](int rank, size_t i) {
    return static_cast<int>(ValueOf(rank, i)) % 3 == 0 ? -2.0f : 2.0f;
  };
  Numbers mine(count);
  Numbers want(count);
  for (size_t i = 0; i < count; ++i) {
    mine[i] = value(comm.rank(), i);
    for (const int rank : Everybody(comm.world())) want[i] += value(rank, i);
  }
  OneBitSum sum(count);
  Numbers out(count, kUnset);
  return Expect(sum.Reduce(comm, mine, out, name), out, want);
}

// Of equal vectors, which is their average.
absl::Status SumByAdasum(Communicator& comm, const std::string& name, size_t count) {
  Adasum sum(comm.world(), count, {0, count / 3});
  RM_RETURN_IF_ERROR(sum.Add(comm.rank(), Values(kRoot, count)));
  Numbers out(count, kUnset);
  return Expect(sum.Reduce(comm, out, name), out, Values(kRoot, count));
}

// The last rank has run out of data.
absl::Status AllreduceOfThoseWhoHaveData(Communicator& comm, const std::string& name,
                                         size_t count) {
  JoinGroup group(comm);
  std::vector<int> others = Everybody(comm.world());
  others.pop_back();
  if (comm.rank() < comm.world() - 1) {
    Numbers out(count, kUnset);
    const auto active = group.Allreduce(Reduction::kSum, Values(comm.rank(), count), out, name);
    RM_RETURN_IF_ERROR(Expect(active.status(), out, SumOf(others, count)));
  }
  return group.Join().status();
}

// Among every second rank.
absl::Status AllreduceOfGroups(Communicator& comm, const std::string& name, size_t count) {
  std::vector<int> ranks;
  for (int rank = comm.rank() % 2; rank < comm.world(); rank += 2) ranks.push_back(rank);
  RM_ASSIGN_OR_RETURN(const auto half, comm.Group(ranks, "half"));
  Numbers out(count, kUnset);
  const absl::Status status =
      half->Allreduce(Reduction::kSum, Values(comm.rank(), count), out, name);
  return Expect(status, out, SumOf(ranks, count));
}

}  // namespace

std::vector<Call> AllCalls(size_t count) {
  using Body = absl::Status (*)(Communicator&, const std::string&, size_t);
  std::vector<Call> calls;
  const auto add = [&](const std::string& name, Algorithm algorithm, Body body) {
    calls.push_back(
        {name, "", algorithm, [=](Communicator& comm) { return body(comm, name, count); }});
  };
  const auto add_all = [&](const char* name, OperationKind kind, Body body) {
    for (const Algorithm algorithm : AlgorithmsOf(kind)) {
      if (algorithm != Algorithm::kTwoLevel)
        add(fmt::format("{} by {}", name, NameOf(algorithm)), algorithm, body);
    }
  };
  add_all("allreduce", OperationKind::kAllreduce, Allreduce);
  add_all("reduce", OperationKind::kReduce, Reduce);
  add_all("broadcast", OperationKind::kBroadcast, Broadcast);
  add_all("ordered sum", OperationKind::kOrderedSum, OrderedReduce);
  add_all("ordered sum of the busy", OperationKind::kOrderedSum, OrderedReduceOfBusy);
  for (const Algorithm between :
       {Algorithm::kDoubling, Algorithm::kHalvingDoubling, Algorithm::kRing}) {
    const std::string name = fmt::format("allreduce by two levels and {}", NameOf(between));
    calls.push_back({name, "", Algorithm::kTwoLevel, [=](Communicator& comm) {
                       return TwoLevelAllreduce(comm, name, between, count);
                     }});
  }
  add("broadcast by two levels", Algorithm::kTwoLevel, TwoLevelBroadcast);
  add("reduce-scatter", Algorithm::kAuto, ReduceScatter);
  add("allgather", Algorithm::kAuto, Allgather);
  add("allgather of bytes", Algorithm::kAuto, AllgatherBytes);
  add("gather", Algorithm::kAuto, Gather);
  add("scatter", Algorithm::kAuto, Scatter);
  add("all-to-all", Algorithm::kAuto, AllToAll);
  add("send and receive", Algorithm::kAuto, SendAndReceive);
  add("send-receive", Algorithm::kAuto, SendReceive);
  add("allreduce of groups", Algorithm::kAuto, AllreduceOfGroups);
  add("sum of top-k", Algorithm::kAuto, SumOfTopK);
  add("sum of one bit", Algorithm::kAuto, SumOfOneBit);
  add("sum by Adasum", Algorithm::kAuto, SumByAdasum);
  add("allreduce of those who have data", Algorithm::kAuto, AllreduceOfThoseWhoHaveData);
  calls.back().also = "who takes part";
  add("barrier", Algorithm::kAuto,
      [](Communicator& comm, const std::string& name, size_t /*count*/) {
        return comm.Barrier(name);
      });
  return calls;
}

bool IsNamedIn(const std::string& text, const Call& call, std::string_view next) {
  const auto names = [&](std::string_view operation) {
    return text.find(fmt::format("\"{}\"", operation)) != std::string::npos;
  };
  return names(call.name) || names(next) || (!call.also.empty() && names(call.also));
}

}  // namespace ringmaster::collectives::testing

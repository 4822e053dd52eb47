// Process groups and asynchronous calls of a Communicator.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/timeline.h"
#include "runtime/collectives/transport/group_transport.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Group(std::span<const int> ranks,
                                                                  std::string_view name) {
  absl::StatusOr<std::unique_ptr<Communicator>> group;
  RM_RETURN_IF_ERROR(Guard(name, [&] {
    group = MakeGroup(ranks, name);
    return group.status();
  }));
  return group;
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Split(int color, int key,
                                                                  std::string_view name) {
  absl::StatusOr<std::unique_ptr<Communicator>> part;
  RM_RETURN_IF_ERROR(Guard(name, [&] {
    part = Divide(color, key, name);
    return part.status();
  }));
  return part;
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::MakeGroup(std::span<const int> ranks,
                                                                      std::string_view name) {
  int mine = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= world()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: rank {} is not in a world of {}", name, ranks[i], world()));
    }
    if (std::count(ranks.begin(), ranks.end(), ranks[i]) > 1)
      return absl::InvalidArgumentError(fmt::format("{}: rank {} is there twice", name, ranks[i]));
    if (ranks[i] == rank()) mine = static_cast<int>(i);
  }
  if (mine < 0)
    return absl::InvalidArgumentError(fmt::format("{}: rank {} is not in it", name, rank()));
  auto transport = std::make_shared<GroupTransport>(
      transport_, std::vector<int>(ranks.begin(), ranks.end()), mine, std::string(name));
  std::vector<std::string> machines;
  for (const int member : ranks)
    machines.push_back(fmt::format("{}", selector_.nodes().node_of(member)));
  Selector selector(NodeMap(machines), selector_.model(), selector_.segment_bytes(),
                    selector_.forced());
  return std::unique_ptr<Communicator>(
      new Communicator(std::move(transport), shared_, std::move(selector)));
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Divide(int color, int key,
                                                                   std::string_view name) {
  const std::vector<int32_t> mine = {color, key};
  std::vector<int32_t> all(2 * static_cast<size_t>(world()));
  const std::vector<size_t> counts(static_cast<size_t>(world()), 2);
  RM_RETURN_IF_ERROR(Allgather(mine, counts, all, name));
  if (color < 0) return nullptr;
  std::vector<std::pair<int, int>> members;  // key and rank
  for (int rank = 0; rank < world(); ++rank) {
    const size_t at = 2 * static_cast<size_t>(rank);
    if (all[at] == color) members.emplace_back(all[at + 1], rank);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [unused_key, rank] : members) ranks.push_back(rank);
  return MakeGroup(ranks, fmt::format("{}/{}", name, color));
}

Handle Communicator::Start(std::function<absl::Status()> call) {
  using std::chrono::steady_clock;
  auto [timeline, name] = TimelineTrack::Current();
  return shared_->queue.Push(this, [this, call = std::move(call), timeline = timeline,
                                    name = std::move(name), started = steady_clock::now()] {
    return Guard("a call that it had started", [&] {
      if (timeline != nullptr) timeline->Add(name, "wait", started, steady_clock::now());
      const TimelineTrack track(timeline, name);
      return call();
    });
  });
}

absl::Status Communicator::Guard(std::string_view what, absl::FunctionRef<absl::Status()> body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    const int self = transport_->round_rank();
    transport_->Abort(
        {absl::ResourceExhaustedError(fmt::format("rank {} ran out of memory in {}", self, what)),
         self});
    TellPeersIfFailed();
    return transport_->failure().status;
  }
}

Handle Communicator::AllreduceAsync(Reduction reduction, ConstElements in, Elements out,
                                    std::string_view name) {
  return Start([this, reduction, in, out, name = std::string(name)] {
    return Allreduce(reduction, in, out, name);
  });
}

Handle Communicator::BroadcastAsync(int root, Elements data, std::string_view name) {
  return Start(
      [this, root, data, name = std::string(name)] { return Broadcast(root, data, name); });
}

Handle Communicator::SendAsync(int to, ConstElements data, std::string_view name) {
  return Start([this, to, data, name = std::string(name)] { return Send(to, data, name); });
}

Handle Communicator::ReceiveAsync(int from, Elements data, std::string_view name) {
  return Start([this, from, data, name = std::string(name)] { return Receive(from, data, name); });
}

}  // namespace ringmaster::collectives

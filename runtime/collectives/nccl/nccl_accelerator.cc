#include "runtime/collectives/nccl/nccl_accelerator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/collectives/algorithms/tree.h"
#include "runtime/collectives/nccl/plan.h"
#include "runtime/collectives/nccl/wait.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives::nccl {
namespace {

// More than the transport's own, which then names the rank that hangs, and less than the three
// after which it blames one where nobody does.
constexpr int kTimeouts = 2;

// What keeps an eye on other ranks while NCCL works: messages that they owe this rank until they
// are done, so that the transport names who is silent or gone.
class Watch {
 public:
  Watch(Transport& transport, std::span<const int> over, std::span<const int> by)
      : transport_(transport), by_(by.begin(), by.end()) {
    for (const int rank : by) transport_.Connect(rank);
    for (const int rank : over) transport_.PostReceive(rank, {});
  }

  // The neighbours in the ring of all ranks: each is watched by one.
  static Watch OverAll(Transport& transport) {
    const int world = transport.world();
    if (world == 1) return Watch(transport, {}, {});
    const int previous[] = {RingRank(transport.rank(), -1, world)};
    const int next[] = {RingRank(transport.rank(), 1, world)};
    return Watch(transport, previous, next);
  }

  // This rank is done. The messages of the others are waited for by the operation's Finish.
  void End() {
    for (const int rank : by_) transport_.PostSend(rank, {});
  }

 private:
  Transport& transport_;
  const std::vector<int> by_;
};

// That they make the same call, and are there.
absl::Status Meet(Transport& transport, std::span<const int> peers) {
  std::vector<Receipt> receipts;
  for (const int peer : peers) transport.PostSend(peer, {});
  for (const int peer : peers) receipts.push_back(transport.PostReceive(peer, {}));
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport.Wait(receipt));
  return absl::OkStatus();
}

}  // namespace

NcclAccelerator::NcclAccelerator(const Vendor& vendor, std::unique_ptr<Device> device,
                                 int most_blocks, std::chrono::milliseconds timeout)
    : vendor_(vendor),
      device_(std::move(device)),
      most_blocks_(most_blocks),
      patience_(kTimeouts * timeout) {}

NcclAccelerator::~NcclAccelerator() {
  device_->Visit([&] {
    for (auto& [ranks, comm] : comms_) {
      if (comm != nullptr) comm->Leave();
    }
    comms_.clear();
  });
}

void NcclAccelerator::Abort() {
  device_->Visit([&] { comms_.clear(); });
}

absl::Status NcclAccelerator::Prepare(Transport& transport) {
  for (int rank = 0; rank < transport.world(); ++rank)
    round_.push_back(transport.RoundRankOf(rank));
  return RunAmongAll(transport, {});
}

absl::Status NcclAccelerator::Begin() {
  ++operations_;
  return device_->Enter();
}

absl::Status NcclAccelerator::End(Transport& transport, const absl::Status& status) const {
  if (status.ok()) return status;
  RM_RETURN_IF_ERROR(LookForCause(transport));
  return Annotate(status, fmt::format("operation {} by NCCL", operations_));
}

absl::StatusOr<Comm*> NcclAccelerator::CommOf(Transport& transport) {
  const int world = transport.world();
  std::vector<int> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(transport.RoundRankOf(rank));
  std::unique_ptr<Comm>& comm = comms_[ranks];
  if (comm != nullptr) return comm.get();
  if (transport.rank() == 0)
    RM_RETURN_IF_ERROR(vendor_.Check(vendor_.ncclGetUniqueId(&id_), "ncclGetUniqueId"));
  const Tree tree = BinomialTree(world, 0, transport.rank());
  const Elements bytes(ElementType::kU8, std::as_writable_bytes(std::span(id_.internal)));
  RM_RETURN_IF_ERROR(TreeBroadcast(transport, std::span(&tree, 1), bytes, sizeof(id_)));
  Watch watch = Watch::OverAll(transport);
  RM_ASSIGN_OR_RETURN(comm, Comm::Join(vendor_, id_, transport.rank(), world, most_blocks_));
  RM_RETURN_IF_ERROR(WaitBeside(transport, patience_, "joining NCCL's communicator",
                                [&] { return comm->Ready(); }));
  watch.End();
  return comm.get();
}

absl::Status NcclAccelerator::RunAmongAll(Transport& transport, std::span<const Step> steps) {
  const auto run = [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(Begin());
    RM_RETURN_IF_ERROR(DisseminationBarrier(transport));
    RM_ASSIGN_OR_RETURN(Comm* const comm, CommOf(transport));
    Watch watch = Watch::OverAll(transport);
    RM_RETURN_IF_ERROR(device_->Run(transport, *comm, steps, patience_));
    watch.End();
    return absl::OkStatus();
  };
  return End(transport, run());
}

absl::Status NcclAccelerator::RunBetween(Transport& transport, std::span<const int> peers,
                                         std::span<const Step> steps) {
  const auto run = [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(Begin());
    RM_RETURN_IF_ERROR(Meet(transport, peers));
    Watch watch(transport, peers, peers);
    RM_RETURN_IF_ERROR(device_->Run(transport, *comms_.at(round_), steps, patience_));
    watch.End();
    return absl::OkStatus();
  };
  return End(transport, run());
}

absl::Status NcclAccelerator::Allreduce(Transport& transport, const Combiner& combiner,
                                        ConstElements in, Elements out) {
  return RunAmongAll(transport, PlanAllreduce(combiner, in, out, device_->slot_bytes()));
}

absl::Status NcclAccelerator::ReduceScatter(Transport& transport, const Combiner& combiner,
                                            ConstElements in, std::span<const size_t> counts,
                                            Elements out) {
  return RunAmongAll(transport, PlanReduceScatter(combiner, transport.rank(), in, counts, out,
                                                  device_->slot_bytes()));
}

absl::Status NcclAccelerator::Reduce(Transport& transport, const Combiner& combiner, int root,
                                     ConstElements in, Elements out) {
  return RunAmongAll(transport,
                     PlanReduce(combiner, transport.rank(), root, in, out, device_->slot_bytes()));
}

absl::Status NcclAccelerator::Broadcast(Transport& transport, int root, Elements data) {
  return RunAmongAll(transport, PlanBroadcast(transport.rank(), root, data, device_->slot_bytes()));
}

absl::Status NcclAccelerator::Allgather(Transport& transport, ConstElements mine,
                                        std::span<const size_t> counts, Elements out) {
  return RunAmongAll(transport,
                     PlanAllgather(transport.rank(), mine, counts, out, device_->slot_bytes()));
}

// Two ranks alone cannot make a communicator that a third knows nothing of, so theirs is the
// round's, whose ranks the messages are told.
absl::Status NcclAccelerator::Run(Transport& transport, const Exchange& exchange) {
  if (exchange.among_all)
    return RunAmongAll(transport, PlanExchange(exchange, device_->slot_bytes()));
  Exchange mapped = exchange;
  std::vector<int> peers;
  for (Outgoing& message : mapped.sends) {
    peers.push_back(message.to);
    message.to = transport.RoundRankOf(message.to);
  }
  for (Incoming& message : mapped.receives) {
    if (std::ranges::find(peers, message.from) == peers.end()) peers.push_back(message.from);
    message.from = transport.RoundRankOf(message.from);
  }
  return RunBetween(transport, peers, PlanExchange(mapped, device_->slot_bytes()));
}

}  // namespace ringmaster::collectives::nccl

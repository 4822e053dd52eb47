#include "runtime/collectives/nccl/comm.h"

#include <chrono>
#include <thread>
#include <utility>

namespace ringmaster::collectives::nccl {
namespace {

// For who leaves: the other ranks may still be at what this one has done.
constexpr std::chrono::seconds kLeaving{5};
constexpr std::chrono::milliseconds kLeavingNap{1};

ncclDataType_t NcclType(ElementType type) {
  constexpr ncclDataType_t kTypes[] = {ncclUint8,    ncclInt32,   ncclInt64,  ncclFloat16,
                                       ncclBfloat16, ncclFloat32, ncclFloat64};
  return kTypes[static_cast<size_t>(type)];
}

// An average is a sum here: its caller has widened the values, and divides (combine.h).
ncclRedOp_t NcclReduction(Reduction reduction) {
  constexpr ncclRedOp_t kReductions[] = {ncclSum, ncclSum, ncclMin, ncclMax, ncclProd};
  return kReductions[static_cast<size_t>(reduction)];
}

}  // namespace

bool CombinesAsWeDo(const Combiner& combiner) {
  const bool integers = combiner.type == ElementType::kU8 || combiner.type == ElementType::kI32 ||
                        combiner.type == ElementType::kI64;
  return integers ||
         (combiner.reduction != Reduction::kMin && combiner.reduction != Reduction::kMax);
}

absl::StatusOr<std::unique_ptr<Comm>> Comm::Join(const Vendor& vendor, const ncclUniqueId& id,
                                                 int rank, int world, int most_blocks) {
  std::unique_ptr<Comm> comm(new Comm(vendor));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (most_blocks != kAnyBlocks) config.maxCTAs = most_blocks;
  RM_RETURN_IF_ERROR(
      vendor.Check(vendor.ncclCommInitRankConfig(&comm->comm_, world, id, rank, &config),
                   "ncclCommInitRankConfig"));
  return comm;
}

Comm::~Comm() {
  Abort();
}

absl::StatusOr<bool> Comm::Ready() const {
  ncclResult_t state = ncclSuccess;
  RM_RETURN_IF_ERROR(
      vendor_.Check(vendor_.ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError"));
  RM_RETURN_IF_ERROR(vendor_.Check(state, "NCCL"));
  return state != ncclInProgress;
}

ncclResult_t Comm::Issue(const Call& call, CUdeviceptr slot, CUstream stream) {
  void* const at = reinterpret_cast<void*>(slot + call.at);
  void* const into = reinterpret_cast<void*>(slot + call.into);
  const ncclDataType_t type = NcclType(call.combiner.type);
  const ncclRedOp_t reduction = NcclReduction(call.combiner.reduction);
  switch (call.kind) {
    case Call::Kind::kAllreduce:
      return vendor_.ncclAllReduce(at, at, call.count, type, reduction, comm_, stream);
    case Call::Kind::kReduce:
      return vendor_.ncclReduce(at, at, call.count, type, reduction, call.peer, comm_, stream);
    case Call::Kind::kReduceScatter:
      return vendor_.ncclReduceScatter(at, into, call.count, type, reduction, comm_, stream);
    case Call::Kind::kBroadcast:
      return vendor_.ncclBroadcast(at, at, call.count, type, call.peer, comm_, stream);
    case Call::Kind::kAllgather:
      return vendor_.ncclAllGather(at, into, call.count, type, comm_, stream);
    case Call::Kind::kSend:
      return vendor_.ncclSend(at, call.count, type, call.peer, comm_, stream);
    case Call::Kind::kReceive:
      return vendor_.ncclRecv(at, call.count, type, call.peer, comm_, stream);
  }
  return ncclInvalidArgument;
}

absl::Status Comm::Queue(std::span<const Call> calls, CUdeviceptr slot, CUstream stream) {
  RM_RETURN_IF_ERROR(vendor_.Check(vendor_.ncclGroupStart(), "ncclGroupStart"));
  ncclResult_t first = ncclSuccess;
  for (const Call& call : calls) {
    const ncclResult_t issued = Issue(call, slot, stream);
    if (first == ncclSuccess && issued != ncclInProgress) first = issued;
  }
  // A group that was begun is ended, whatever came of its calls.
  const ncclResult_t ended = vendor_.ncclGroupEnd();
  RM_RETURN_IF_ERROR(vendor_.Check(first, "a call of NCCL"));
  return vendor_.Check(ended, "ncclGroupEnd");
}

void Comm::Leave() {
  if (comm_ == nullptr) return;
  const auto deadline = std::chrono::steady_clock::now() + kLeaving;
  if (!vendor_.Check(vendor_.ncclCommFinalize(comm_), "ncclCommFinalize").ok()) return Abort();
  while (true) {
    const absl::StatusOr<bool> ready = Ready();
    if (!ready.ok() || (!*ready && std::chrono::steady_clock::now() >= deadline)) return Abort();
    if (*ready) break;
    std::this_thread::sleep_for(kLeavingNap);
  }
  vendor_.ncclCommDestroy(std::exchange(comm_, nullptr));
}

void Comm::Abort() {
  if (comm_ != nullptr) vendor_.ncclCommAbort(std::exchange(comm_, nullptr));
}

}  // namespace ringmaster::collectives::nccl

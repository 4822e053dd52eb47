#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/boot_id.h"
#include "common/env.h"
#include "runtime/collectives/nccl/device.h"
#include "runtime/collectives/nccl/nccl.h"
#include "runtime/collectives/nccl/nccl_accelerator.h"
#include "runtime/collectives/nccl/ranks.h"
#include "runtime/collectives/nccl/vendor.h"
#include "runtime/collectives/operation.h"

namespace ringmaster::collectives::nccl {
namespace {

constexpr char kName[] = "NCCL";
// Large enough for all links to be busy, small enough for copies to overlap with them.
constexpr size_t kSlotBytes = size_t{8} << 20;
constexpr int kBusIdBytes = 32;
constexpr int kSharingVersion = 23000;  // 2.30, the first that heeds kShareVariable

absl::StatusOr<RankFacts> FindOutFacts() {
  RM_ASSIGN_OR_RETURN(const Vendor* const vendor, LoadVendor());
  RankFacts facts;
  int version = 0;
  RM_RETURN_IF_ERROR(vendor->Check(vendor->ncclGetVersion(&version), "ncclGetVersion"));
  facts.version = VersionText(version);
  // Containers of one machine have the same one, and see the same places on its bus.
  RM_ASSIGN_OR_RETURN(facts.machine, BootId());
  facts.may_share = MayShareDevices() && version >= kSharingVersion;
  int devices = 0;
  RM_RETURN_IF_ERROR(vendor->Check(vendor->cuDeviceGetCount(&devices), "cuDeviceGetCount"));
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    CUdevice device = 0;
    char place[kBusIdBytes] = "";
    RM_RETURN_IF_ERROR(vendor->Check(vendor->cuDeviceGet(&device, ordinal), "cuDeviceGet"));
    RM_RETURN_IF_ERROR(vendor->Check(vendor->cuDeviceGetPCIBusId(place, kBusIdBytes, device),
                                     "cuDeviceGetPCIBusId"));
    facts.devices.emplace_back(place);
  }
  return facts;
}

// Every rank's text, by rank.
absl::StatusOr<std::vector<std::string>> TellAll(Communicator& communicator,
                                                 const std::string& text) {
  return communicator.AllgatherBytes(std::as_bytes(std::span(text)), kName);
}

absl::StatusOr<Seat> ChooseDevice(Communicator& communicator) {
  auto found = FindOutFacts();
  RankFacts mine;
  if (found.ok()) {
    mine = *std::move(found);
  } else {
    mine.problem = Message(found.status());
  }
  RM_ASSIGN_OR_RETURN(const auto texts, TellAll(communicator, ToText(mine)));
  std::vector<RankFacts> ranks;
  for (const std::string& text : texts) {
    RM_ASSIGN_OR_RETURN(ranks.emplace_back(), FactsFromText(text));
  }
  RM_ASSIGN_OR_RETURN(const std::vector<Seat> seats, AssignDevices(ranks));
  return seats[static_cast<size_t>(communicator.rank())];
}

}  // namespace

absl::StatusOr<int> CountDevices() {
  RM_ASSIGN_OR_RETURN(const RankFacts facts, FindOutFacts());
  return static_cast<int>(facts.devices.size());
}

bool MayShareDevices() {
  return env::GetInteger(kShareVariable).value_or(0) != 0;
}

absl::Status Attach(Communicator& communicator, std::chrono::milliseconds timeout) {
  RM_ASSIGN_OR_RETURN(const Seat seat, ChooseDevice(communicator));
  RM_ASSIGN_OR_RETURN(const Vendor* const vendor, LoadVendor());
  auto device = Device::Open(*vendor, seat, kSlotBytes);
  RM_ASSIGN_OR_RETURN(const auto problems, TellAll(communicator, Message(device.status())));
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    return absl::FailedPreconditionError(
        fmt::format("rank {} cannot use NCCL: its GPU is not ready: {}", rank, problems[rank]));
  }
  // NCCL builds as many paths on each rank as the limit there allows, so it must be one for all.
  int32_t most_blocks = (*device)->most_blocks();
  const std::span<int32_t> limit(&most_blocks, 1);
  RM_RETURN_IF_ERROR(communicator.Allreduce(Reduction::kMin, limit, limit, kName));
  auto accelerator =
      std::make_unique<NcclAccelerator>(*vendor, *std::move(device), most_blocks, timeout);
  const Operation operation{OperationKind::kBarrier, ElementType::kU8, 0, 0, kName, ""};
  const absl::Status prepared =
      communicator.Run(operation, [&](Transport& t) { return accelerator->Prepare(t); });
  if (!prepared.ok()) {
    accelerator->Abort();
    return prepared;
  }
  communicator.Accelerate(std::move(accelerator));
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives::nccl

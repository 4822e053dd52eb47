#include "runtime/collectives/membership.h"

#include <fmt/format.h>

namespace ringmaster::collectives {
namespace {

constexpr size_t kMinKeyBytes = 16;
constexpr size_t kMaxUidBytes = 64;

}  // namespace

absl::Status Validate(const Membership& membership) {
  const int world = membership.world();
  if (world < 1) return absl::InvalidArgumentError("members: the round has no members");
  if (membership.rank < 0 || membership.rank >= world) {
    return absl::InvalidArgumentError(
        fmt::format("rank: {} is not in a round of {} members", membership.rank, world));
  }
  if (membership.key.size() < kMinKeyBytes) {
    return absl::InvalidArgumentError(
        fmt::format("key: {} bytes; at least {} are needed", membership.key.size(), kMinKeyBytes));
  }
  for (int rank = 0; rank < world; ++rank) {
    const size_t bytes = membership.members[rank].pod_uid.size();
    if (bytes >= 1 && bytes <= kMaxUidBytes) continue;
    return absl::InvalidArgumentError(fmt::format(
        "members[{}].pod_uid: {} bytes; it must have 1 to {}", rank, bytes, kMaxUidBytes));
  }
  return absl::OkStatus();
}

std::string DescribeRank(const Membership& membership, int rank) {
  const Member& member = membership.members[rank];
  return fmt::format("rank {} ({}, pod {})", rank, member.address, member.pod_uid);
}

}  // namespace ringmaster::collectives

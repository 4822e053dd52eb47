#include "runtime/collectives/algorithms/ownership.h"

#include <fmt/format.h>

namespace ringmaster::collectives {

void Ownership::Reset(int world, int shards) {
  world_ = world;
  shards_ = shards;
  row_bytes_ = (static_cast<size_t>(shards) + 7) / 8;
  bits_.assign(static_cast<size_t>(world) * row_bytes_, std::byte{});
}

void Ownership::Set(int rank, const std::vector<bool>& owned) {
  for (size_t shard = 0; shard < owned.size(); ++shard) {
    if (owned[shard]) bits(rank)[shard / 8] |= std::byte{1} << (shard % 8);
  }
}

std::span<std::byte> Ownership::bits(int rank) {
  return std::span(bits_).subspan(static_cast<size_t>(rank) * row_bytes_, row_bytes_);
}

bool Ownership::Has(int rank, int shard) const {
  const auto at = static_cast<size_t>(shard);
  const std::byte byte = bits_[static_cast<size_t>(rank) * row_bytes_ + at / 8];
  return (byte & (std::byte{1} << (at % 8))) != std::byte{0};
}

std::vector<int> Ownership::ShardsOf(int rank) const {
  std::vector<int> list;
  for (int shard = 0; shard < shards_; ++shard) {
    if (Has(rank, shard)) list.push_back(shard);
  }
  return list;
}

absl::Status Ownership::Check() const {
  for (int shard = 0; shard < shards_; ++shard) {
    int owner = -1;
    for (int rank = 0; rank < world_; ++rank) {
      if (!Has(rank, shard)) continue;
      if (owner >= 0) {
        return absl::FailedPreconditionError(
            fmt::format("shard {} was added by rank {} and by rank {}", shard, owner, rank));
      }
      owner = rank;
    }
    if (owner < 0)
      return absl::FailedPreconditionError(fmt::format("shard {} was added by no rank", shard));
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

#include "runtime/collectives/algorithms/ownership.h"

#include <fmt/format.h>

#include "runtime/collectives/operation.h"

namespace ringmaster::collectives {

void Ownership::Reset(int world, int shards) {
  world_ = world;
  shards_ = shards;
  row_bytes_ = (static_cast<size_t>(shards) + 7) / 8;
  bits_.assign(static_cast<size_t>(world) * row_bytes_, std::byte{});
}

void Ownership::Give(int rank, int shard) {
  const auto at = static_cast<size_t>(shard);
  bits(rank)[at / 8] |= std::byte{1} << (at % 8);
}

bool Ownership::Has(int rank, int shard) const {
  const auto at = static_cast<size_t>(shard);
  return (bits(rank)[at / 8] & (std::byte{1} << (at % 8))) != std::byte{0};
}

std::span<std::byte> Ownership::bits(int rank) {
  return std::span(bits_).subspan(static_cast<size_t>(rank) * row_bytes_, row_bytes_);
}

std::span<const std::byte> Ownership::bits(int rank) const {
  return std::span(bits_).subspan(static_cast<size_t>(rank) * row_bytes_, row_bytes_);
}

uint64_t Ownership::digest() const {
  return Digest(bits_.data(), bits_.size());
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

// Which rank brings which shards to an ordered sum.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_OWNERSHIP_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_OWNERSHIP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace ringmaster::collectives {

// A bit per shard for each rank, as the ranks tell one another. Not thread-safe.
class Ownership {
 public:
  Ownership() = default;  // of no ranks
  Ownership(int world, int shards) { Reset(world, shards); }

  // As a new one, in the same memory.
  void Reset(int world, int shards);

  int shards() const { return shards_; }
  int world() const { return world_; }

  void Give(int rank, int shard);
  bool Has(int rank, int shard) const;

  // The bits of one rank, to be sent or received into; as long for each.
  std::span<std::byte> bits(int rank);
  std::span<const std::byte> bits(int rank) const;

  // Of all bits: the same on ranks that know of the same owners.
  uint64_t digest() const;

  // Increasing.
  std::vector<int> ShardsOf(int rank) const;

  // kFailedPrecondition naming the shard, and the ranks, unless every shard has exactly one owner.
  absl::Status Check() const;

  bool operator==(const Ownership&) const = default;

 private:
  int world_ = 0;
  int shards_ = 0;
  size_t row_bytes_ = 0;
  std::vector<std::byte> bits_;  // a row per rank
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_OWNERSHIP_H_

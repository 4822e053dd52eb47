#include "runtime/train/memory_check.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "common/text.h"

namespace ringmaster::train {
namespace {

// A pool as its ranks see it. They look one after another, and none takes anything in between, so
// the one who saw the least has seen what the others had taken.
struct Shared {
  std::string owner;
  int64_t available = 0;
  int64_t needed = 0;
  std::vector<int> ranks;
};

std::string ToText(const MemoryNeed& need) {
  nlohmann::json pools = nlohmann::json::array();
  for (const device::MemoryPool& pool : need.pools)
    pools.push_back({{"name", pool.name}, {"owner", pool.owner}, {"available", pool.available}});
  return nlohmann::json{{"bytes", need.bytes}, {"pools", pools}}.dump();
}

void Add(const std::string& text, int rank, std::map<std::string, Shared>& shared) {
  const nlohmann::json need = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (need.is_discarded()) return;
  for (const nlohmann::json& pool : need.at("pools")) {
    const std::string name = pool.at("name");
    if (name.empty()) continue;
    const int64_t available = pool.at("available");
    Shared& with = shared.try_emplace(name, Shared{pool.at("owner"), available}).first->second;
    with.available = std::min(with.available, available);
    with.needed += need.at("bytes").get<int64_t>();
    with.ranks.push_back(rank);
  }
}

std::string Complaint(const Shared& pool) {
  const bool one = pool.ranks.size() == 1;
  return fmt::format(
      "worker{} {} need{} {} more of memory{}, {} {} has {} left; start fewer workers there, cut "
      "the "
      "batch into more shards (batch.shards), make it smaller, or give the workers more memory",
      one ? "" : "s", fmt::join(pool.ranks, ", "), one ? "s" : "",
      WithUnit(static_cast<uint64_t>(pool.needed)), one ? "" : " together", one ? "its" : "their",
      pool.owner, WithUnit(static_cast<uint64_t>(pool.available)));
}

}  // namespace

absl::StatusOr<std::optional<std::string>> FindLackOfMemory(collectives::Communicator& communicator,
                                                            const MemoryNeed& mine) {
  const std::string text = ToText(mine);
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator.AllgatherBytes(std::as_bytes(std::span(text)), "memory"));
  std::map<std::string, Shared> shared;
  for (size_t rank = 0; rank < all.size(); ++rank) Add(all[rank], static_cast<int>(rank), shared);
  for (const auto& [name, pool] : shared) {
    if (pool.needed > pool.available) return Complaint(pool);
  }
  return std::nullopt;
}

}  // namespace ringmaster::train

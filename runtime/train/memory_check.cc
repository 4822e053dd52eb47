#include "runtime/train/memory_check.h"

#include <algorithm>
#include <map>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/status.h"
#include "common/text.h"

namespace ringmaster::train {
namespace {

// A pool as its ranks see it. They look one after another, and none takes or gives back anything in
// between, so the one who saw the least has seen what the others had taken.
struct Shared {
  std::string owner;
  int64_t available = 0;
  int64_t needed = 0;
  std::vector<int> ranks;
};

// The bytes, and a line for each pool that can be told from others. No name has blanks.
std::string ToText(const MemoryNeed& need) {
  std::string text = fmt::format("{}\n", need.bytes);
  for (const device::MemoryPool& pool : need.pools) {
    if (!pool.name.empty())
      text += fmt::format("{} {} {}\n", pool.available, pool.owner, pool.name);
  }
  return text;
}

absl::Status Add(const std::string& text, int rank, std::map<std::string, Shared>& shared) {
  std::istringstream in(text);
  int64_t bytes = 0, available = 0;
  std::string owner, name;
  in >> bytes;
  bool good = !in.fail();
  while (good && in >> available) {
    good = static_cast<bool>(in >> owner >> name);
    if (!good) break;
    Shared& pool = shared.try_emplace(name, Shared{owner, available}).first->second;
    pool.available = std::min(pool.available, available);
    pool.needed += bytes;
    pool.ranks.push_back(rank);
  }
  if (good && in.eof()) return absl::OkStatus();
  return absl::InternalError(
      fmt::format("rank {} did not say which memory it needs, but \"{}\"", rank, text));
}

std::string Complaint(const Shared& pool) {
  const bool one = pool.ranks.size() == 1;
  return fmt::format(
      "worker{} {} need{} {} more of memory{}, {} {} has {} left; start fewer workers there, cut "
      "the batch into more shards (batch.shards), make it smaller, or give the workers more memory",
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
  for (size_t rank = 0; rank < all.size(); ++rank)
    RM_RETURN_IF_ERROR(Add(all[rank], static_cast<int>(rank), shared));
  for (const auto& [name, pool] : shared) {
    if (pool.needed > pool.available) return Complaint(pool);
  }
  return std::nullopt;
}

}  // namespace ringmaster::train

#include "operator/kube/memory/list_pages.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "operator/kube/errors.h"

namespace ringmaster::kube::memory {
namespace {

constexpr std::size_t kListsRemembered = 32;

}  // namespace

ObjectList ListPages::First(std::vector<ObjectPtr> all, std::string resource_version,
                            std::int64_t limit) {
  if (limit <= 0 || all.size() <= static_cast<std::size_t>(limit)) {
    return {std::move(all), std::move(resource_version), ""};
  }
  const std::uint64_t id = next_id_++;
  const auto it = lists_.emplace(id, Snapshot{std::move(all), std::move(resource_version)}).first;
  ObjectList page = Cut(it->second, id, 0, limit);
  if (lists_.size() > kListsRemembered) lists_.erase(lists_.begin());
  return page;
}

absl::StatusOr<ObjectList> ListPages::Continue(const std::string& token, std::int64_t limit) {
  unsigned long long id = 0;
  std::size_t from = 0;
  if (std::sscanf(token.c_str(), "%llu:%zu", &id, &from) != 2)
    return BadRequest("the continue token is malformed");
  const auto it = lists_.find(id);
  if (it == lists_.end())
    return Expired("the provided continue parameter is too old to display a consistent list");
  return Cut(it->second, id, from, limit);
}

ObjectList ListPages::Cut(const Snapshot& snapshot, std::uint64_t id, std::size_t from,
                          std::int64_t limit) {
  const std::size_t size = snapshot.items.size();
  from = std::min(from, size);
  const std::size_t end =
      limit <= 0 ? size : std::min(size, from + static_cast<std::size_t>(limit));
  const auto begin = snapshot.items.begin();
  ObjectList page{
      {begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(end)},
      snapshot.resource_version,
      ""};
  if (end < size) page.continue_token = fmt::format("{}:{}", id, end);
  return page;
}

}  // namespace ringmaster::kube::memory

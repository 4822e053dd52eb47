#include "runtime/collectives/transport/group_transport.h"

#include <utility>

namespace ringmaster::collectives {
namespace {

uint64_t IdOf(const std::vector<int>& members, const std::string& name) {
  return Digest(members.data(), members.size() * sizeof(int), Digest(name.data(), name.size()));
}

}  // namespace

GroupTransport::GroupTransport(std::shared_ptr<Transport> parent, std::vector<int> members,
                               int rank, std::string name)
    : parent_(std::move(parent)),
      members_(std::move(members)),
      rank_(rank),
      name_(std::move(name)),
      id_(IdOf(members_, name_)) {}

absl::Status GroupTransport::Begin(const Operation& operation, const Scope& scope) {
  std::span<const int> ranks = members_;
  if (!scope.ranks.empty()) {
    ranks_.clear();
    for (const int rank : scope.ranks) ranks_.push_back(Map(rank));
    ranks = ranks_;
  }
  const auto agreed = [this](int rank) { return by_peer_[static_cast<size_t>(rank)]; };
  const AgreedWith by_peer = agreed;
  Operation mapped = operation;
  if (operation.by_peer != nullptr) {
    by_peer_.assign(static_cast<size_t>(parent_->world()), 0);
    for (int rank = 0; rank < world(); ++rank)
      by_peer_[static_cast<size_t>(Map(rank))] = (*operation.by_peer)(rank);
    mapped.by_peer = &by_peer;
  }
  // A group of this group names itself already.
  const std::string_view name = scope.name.empty() ? std::string_view(name_) : scope.name;
  return parent_->Begin(
      mapped,
      {.ranks = ranks, .group = Digest(&scope.group, sizeof(scope.group), id_), .name = name});
}

bool GroupTransport::PostSendToEach(std::span<const int> peers, std::span<const std::byte> bytes) {
  peers_.clear();
  for (const int peer : peers) peers_.push_back(Map(peer));
  return parent_->PostSendToEach(peers_, bytes);
}

}  // namespace ringmaster::collectives

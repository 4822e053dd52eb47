// A group of a round's ranks as a transport of its own: maps ranks and names the group; the bytes
// go over the round's connections.
//
// Ranks here are the group's, but for Failure::suspect, which is the round's, as everywhere. One
// operation at a time over all groups of a round; order, errors and threads as Transport's. A
// group of a group works.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_GROUP_TRANSPORT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_GROUP_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

class GroupTransport final : public Transport {
 public:
  // members[r] is the rank in `parent` of the group's rank r; members[rank] is this one. No rank
  // stands there twice. The name and the list are part of what must agree in each operation.
  GroupTransport(std::shared_ptr<Transport> parent, std::vector<int> members, int rank,
                 std::string name);

  int rank() const override { return rank_; }
  int world() const override { return static_cast<int>(members_.size()); }
  uint64_t round() const override { return parent_->round(); }
  Workspace& workspace() override { return parent_->workspace(); }
  int RoundRankOf(int rank) const override { return parent_->RoundRankOf(Map(rank)); }

  absl::Status Begin(const Operation& operation, const Scope& scope) override;
  void Connect(int peer) override { parent_->Connect(Map(peer)); }
  bool PostSend(int peer, std::span<const std::byte> bytes) override {
    return parent_->PostSend(Map(peer), bytes);
  }
  bool PostSendToEach(std::span<const int> peers, std::span<const std::byte> bytes) override;
  absl::StatusOr<bool> TrySends() override { return parent_->TrySends(); }
  Receipt PostReceive(int peer, std::span<std::byte> bytes) override {
    return parent_->PostReceive(Map(peer), bytes);
  }
  Receipt PostCombine(int peer, const Combining& combining) override {
    return parent_->PostCombine(Map(peer), combining);
  }
  absl::Status Wait(Receipt receipt) override { return parent_->Wait(receipt); }
  absl::Status Look(bool progress) override { return parent_->Look(progress); }
  absl::Status Finish() override { return parent_->Finish(); }
  absl::Status Fail(Failure failure) override { return parent_->Fail(std::move(failure)); }
  absl::Status Abandon(Failure failure) override { return parent_->Abandon(std::move(failure)); }
  void Abort(Failure failure) override { parent_->Abort(std::move(failure)); }
  void TellPeers() override { parent_->TellPeers(); }
  Failure failure() const override { return parent_->failure(); }
  bool has_failed() const override { return parent_->has_failed(); }
  Traffic traffic() const override { return parent_->traffic(); }

 private:
  int Map(int rank) const { return members_[static_cast<size_t>(rank)]; }

  const std::shared_ptr<Transport> parent_;
  const std::vector<int> members_;
  const int rank_;
  const std::string name_;
  const uint64_t id_;
  std::vector<int> ranks_;         // the scope of the operation in progress,
  std::vector<uint64_t> by_peer_;  // and what its pairs agree on, by the parent's ranks
  std::vector<int> peers_;         // of the last message for several
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_GROUP_TRANSPORT_H_

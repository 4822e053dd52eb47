// Some of a transport's ranks as if they were all: for an algorithm that is one phase of another.
//
// A view of an operation that has begun: rank i of the view is ranks[i]. It owns nothing; the
// transport and the list must outlive it. Errors, deadlines and the operation's end are the
// transport's own.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RANK_VIEW_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RANK_VIEW_H_

#include <algorithm>
#include <span>
#include <utility>

#include "common/check.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

class RankView final : public Transport {
 public:
  // `ranks` contains the transport's own.
  RankView(Transport& transport, std::span<const int> ranks)
      : transport_(transport), ranks_(ranks) {
    const auto self = std::find(ranks_.begin(), ranks_.end(), transport_.rank());
    RM_CHECK(self != ranks_.end(), "a view without the rank itself");
    rank_ = static_cast<int>(self - ranks_.begin());
  }

  int rank() const override { return rank_; }
  int world() const override { return static_cast<int>(ranks_.size()); }
  uint64_t round() const override { return transport_.round(); }
  Workspace& workspace() override { return transport_.workspace(); }
  int RoundRankOf(int rank) const override { return transport_.RoundRankOf(Of(rank)); }
  absl::Status Begin(const Operation& operation, const Scope& scope) override {
    return transport_.Begin(operation, scope);
  }
  void Connect(int peer) override { transport_.Connect(Of(peer)); }
  bool PostSend(int peer, std::span<const std::byte> bytes) override {
    return transport_.PostSend(Of(peer), bytes);
  }
  absl::StatusOr<bool> TrySends() override { return transport_.TrySends(); }
  Receipt PostReceive(int peer, std::span<std::byte> bytes) override {
    return transport_.PostReceive(Of(peer), bytes);
  }
  Receipt PostCombine(int peer, const Combining& combining) override {
    return transport_.PostCombine(Of(peer), combining);
  }
  absl::Status Wait(Receipt receipt) override { return transport_.Wait(receipt); }
  absl::Status Look(bool progress) override { return transport_.Look(progress); }
  absl::Status Finish() override { return transport_.Finish(); }
  absl::Status Fail(Failure failure) override { return transport_.Fail(std::move(failure)); }
  absl::Status Abandon(Failure failure) override { return transport_.Abandon(std::move(failure)); }
  void Abort(Failure failure) override { transport_.Abort(std::move(failure)); }
  void TellPeers() override { transport_.TellPeers(); }
  Failure failure() const override { return transport_.failure(); }
  bool has_failed() const override { return transport_.has_failed(); }
  Traffic traffic() const override { return transport_.traffic(); }

 private:
  int Of(int peer) const { return ranks_[static_cast<size_t>(peer)]; }

  Transport& transport_;
  const std::span<const int> ranks_;
  int rank_ = 0;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RANK_VIEW_H_

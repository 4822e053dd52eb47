#include "runtime/collectives/testing/tripwire.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/collectives/timeline.h"
#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::testing {
namespace {

// Counts steps: before each post, and before and after each wait.
class TrippedTransport final : public Transport {
 public:
  TrippedTransport(std::unique_ptr<Transport> inner, Tripwire& wire)
      : inner_(std::move(inner)), wire_(wire) {
    wire_.transport = inner_.get();
  }

  int rank() const override { return inner_->rank(); }
  int world() const override { return inner_->world(); }
  uint64_t round() const override { return inner_->round(); }
  Workspace& workspace() override { return inner_->workspace(); }
  absl::Status Begin(const Operation& operation, const Scope& scope) override {
    wire_.Step();
    return inner_->Begin(operation, scope);
  }
  void Connect(int peer) override { inner_->Connect(peer); }
  bool PostSend(int peer, std::span<const std::byte> bytes) override {
    wire_.Step();
    return inner_->PostSend(peer, bytes);
  }
  bool PostSendToEach(std::span<const int> peers, std::span<const std::byte> bytes) override {
    wire_.Step();
    return inner_->PostSendToEach(peers, bytes);
  }
  absl::StatusOr<bool> TrySends() override {
    wire_.Step();
    return inner_->TrySends();
  }
  Receipt PostReceive(int peer, std::span<std::byte> bytes) override {
    wire_.Step();
    return inner_->PostReceive(peer, bytes);
  }
  Receipt PostCombine(int peer, const Combining& combining) override {
    wire_.Step();
    return inner_->PostCombine(peer, combining);
  }
  absl::Status Wait(Receipt receipt) override {
    wire_.Step();
    return AndStep(inner_->Wait(receipt));
  }
  absl::Status Look(bool progress) override { return inner_->Look(progress); }
  absl::Status Finish() override {
    wire_.Step();
    return AndStep(inner_->Finish());
  }
  absl::Status Fail(Failure failure) override { return inner_->Fail(std::move(failure)); }
  absl::Status Abandon(Failure failure) override { return inner_->Abandon(std::move(failure)); }
  void Abort(Failure failure) override { inner_->Abort(std::move(failure)); }
  void TellPeers() override { inner_->TellPeers(); }
  Failure failure() const override { return inner_->failure(); }
  bool has_failed() const override { return inner_->has_failed(); }
  Traffic traffic() const override { return inner_->traffic(); }

 private:
  absl::Status AndStep(absl::Status status) {
    if (status.ok()) wire_.Step();
    return status;
  }

  const std::unique_ptr<Transport> inner_;
  Tripwire& wire_;
};

}  // namespace

void Tripwire::Step() {
  if (!armed) return;
  const std::string_view now = phases.emplace_back(TimelineTrack::CurrentPhase());
  if (!phase.empty() && phase != now) return;
  if (counted++ != at) return;
  tripped_in = now;
  std::exchange(trip, nullptr)();
}

void Tripwire::Abort(const std::string& why) {
  transport->Abort({absl::UnavailableError(why), -1});
}

std::vector<std::pair<std::string, int>> MiddleOfEachPhase(
    const std::vector<std::string_view>& phases) {
  std::vector<std::pair<std::string, int>> middles;
  for (const std::string_view phase : phases) {
    const auto is_it = [&](const auto& middle) { return middle.first == phase; };
    if (std::ranges::any_of(middles, is_it)) continue;
    middles.emplace_back(phase, static_cast<int>((std::ranges::count(phases, phase) - 1) / 2));
  }
  return middles;
}

std::unique_ptr<Communicator> OpenTripped(const CommunicatorOptions& options,
                                          tcp::Listener& listener, Tripwire* wire) {
  if (wire == nullptr) {
    auto comm = Communicator::Create(options, listener);
    EXPECT_TRUE(comm.ok()) << comm.status();
    return *std::move(comm);
  }
  auto transport =
      tcp::TcpTransport::Create(options, {options.connect_timeout, options.operation_timeout},
                                {options.transport, options.shared_memory_bytes}, listener,
                                {options.encryption, options.congestion_control});
  EXPECT_TRUE(transport.ok()) << transport.status();
  return std::make_unique<Communicator>(
      std::make_unique<TrippedTransport>(*std::move(transport), *wire), options.segment_bytes,
      options.algorithm);
}

}  // namespace ringmaster::collectives::testing

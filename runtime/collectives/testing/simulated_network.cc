#include "runtime/collectives/testing/simulated_network.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/transport/arrival.h"

namespace ringmaster::collectives::testing {
namespace {

enum class State { kReady, kWaiting, kDone };

// Bytes on the way. Not from operator new, which a test may count.
struct Freer {
  void operator()(void* memory) const { std::free(memory); }
};
struct Message {
  std::unique_ptr<void, Freer> bytes;
  size_t size = 0;
  double arrival = 0;
};

}  // namespace

class SimulatedNetwork::RankTransport final : public Transport {
 public:
  RankTransport(SimulatedNetwork& network, int rank) : network_(network), rank_(rank) {
    const auto world = static_cast<size_t>(network.nodes_.world());
    inbox_.resize(world);
    posted_.resize(world);
    posts_.resize(world);
    completed_.resize(world);
  }

  int rank() const override { return rank_; }
  int world() const override { return network_.nodes_.world(); }
  uint64_t round() const override { return 1; }
  Workspace& workspace() override { return workspace_; }
  absl::Status Begin(const Operation&, const Scope&) override { return absl::OkStatus(); }
  void Connect(int) override {}

  // Says, as over a socket, that the bytes are still needed.
  bool PostSend(int peer, std::span<const std::byte> bytes) override {
    std::unique_lock lock(network_.mutex_);
    network_.Yield(lock, *this);
    peers_.insert(peer);
    RankTransport& to = *network_.ranks_[static_cast<size_t>(peer)];
    Message message{std::unique_ptr<void, Freer>(std::malloc(bytes.size() + 1)), bytes.size()};
    if (!bytes.empty()) std::memcpy(message.bytes.get(), bytes.data(), bytes.size());
    message.arrival = network_.Carry(*this, to, bytes.size(), clock_);
    clock_ += network_.LinkBetween(rank_, peer).overhead;
    to.peers_.insert(rank_);
    to.inbox_[static_cast<size_t>(rank_)].push_back(std::move(message));
    if (to.state_ == State::kWaiting) to.state_ = State::kReady;
    return false;
  }

  Receipt PostReceive(int peer, std::span<std::byte> bytes) override {
    return Post(peer, Arrival(bytes));
  }
  Receipt PostCombine(int peer, const Combining& combining) override {
    return Post(peer, Arrival(combining));
  }

  absl::Status Wait(Receipt receipt) override {
    std::unique_lock lock(network_.mutex_);
    const auto peer = static_cast<size_t>(receipt.peer);
    while (completed_[peer] < receipt.number) {
      while (inbox_[peer].empty()) {
        state_ = State::kWaiting;
        network_.Yield(lock, *this);
        if (network_.stuck_) return absl::DeadlineExceededError("the ranks wait in a circle");
      }
      Message message = std::move(inbox_[peer].front());
      inbox_[peer].pop_front();
      if (const absl::Status taken = Take(std::move(message), peer); !taken.ok()) return taken;
    }
    return absl::OkStatus();
  }

  absl::Status Look(bool) override { return absl::OkStatus(); }  // whoever runs sees all at once

  absl::Status Finish() override {
    for (size_t peer = 0; peer < posts_.size(); ++peer)
      RM_RETURN_IF_ERROR(Wait({static_cast<int>(peer), posts_[peer]}));
    return absl::OkStatus();
  }

  absl::Status Fail(Failure failure) override { return failure.status; }
  absl::Status Abandon(Failure failure) override { return failure.status; }
  void Abort(Failure) override {}
  void TellPeers() override {}
  Failure failure() const override { return {}; }
  Traffic traffic() const override { return {}; }

 private:
  friend class SimulatedNetwork;

  Receipt Post(int peer, const Arrival& posted) {
    const auto at = static_cast<size_t>(peer);
    posted_[at].push_back(posted);
    return {peer, ++posts_[at]};
  }

  absl::Status Take(Message message, size_t peer) {
    const Arrival posted = posted_[peer].front();
    posted_[peer].pop_front();
    ++completed_[peer];
    if (posted.size() != message.size) return absl::DataLossError("another length");
    clock_ = std::max(clock_, message.arrival);
    posted.Deliver(0, {static_cast<const std::byte*>(message.bytes.get()), message.size});
    if (posted.combines()) clock_ += static_cast<double>(message.size) * network_.model_.gamma;
    return absl::OkStatus();
  }

  SimulatedNetwork& network_;
  const int rank_;
  std::condition_variable turn_;
  bool has_turn_ = false;
  State state_ = State::kReady;
  double clock_ = 0;
  double out_free_ = 0;  // its own ports, within the node
  double in_free_ = 0;
  Workspace workspace_;
  std::set<int> peers_;
  std::vector<std::deque<Message>> inbox_;  // by peer, as the rest
  std::vector<std::deque<Arrival>> posted_;
  std::vector<uint64_t> posts_;
  std::vector<uint64_t> completed_;
};

SimulatedNetwork::SimulatedNetwork(NodeMap nodes, const CostModel& model)
    : nodes_(std::move(nodes)), model_(model) {}

SimulatedNetwork::~SimulatedNetwork() = default;

const LinkCost& SimulatedNetwork::LinkBetween(int a, int b) const {
  return nodes_.node_of(a) == nodes_.node_of(b) ? model_.within : model_.between;
}

double SimulatedNetwork::Carry(RankTransport& from, RankTransport& to, size_t bytes, double now) {
  const LinkCost& link = LinkBetween(from.rank_, to.rank_);
  const bool inside = nodes_.node_of(from.rank_) == nodes_.node_of(to.rank_);
  double& out =
      inside ? from.out_free_ : out_free_[static_cast<size_t>(nodes_.node_of(from.rank_))];
  double& in = inside ? to.in_free_ : in_free_[static_cast<size_t>(nodes_.node_of(to.rank_))];
  const double length = static_cast<double>(bytes) * link.beta;
  const double start = std::max(now, out);
  out = start + link.overhead + length;
  in = std::max(start + link.alpha, in) + length;
  return in;
}

void SimulatedNetwork::PassTurn() {
  RankTransport* next = nullptr;
  bool all_done = true;
  for (const auto& rank : ranks_) {
    all_done = all_done && rank->state_ == State::kDone;
    if (rank->state_ != State::kReady) continue;
    if (next == nullptr || rank->clock_ < next->clock_) next = rank.get();
  }
  if (next == nullptr && !all_done) {
    stuck_ = true;
    for (const auto& rank : ranks_) {
      if (rank->state_ == State::kWaiting) next = rank.get();
    }
    next->state_ = State::kReady;
  }
  if (next == nullptr) return;
  next->has_turn_ = true;
  next->turn_.notify_one();
}

void SimulatedNetwork::Yield(std::unique_lock<std::mutex>& lock, RankTransport& self) {
  self.has_turn_ = false;
  PassTurn();
  self.turn_.wait(lock, [&] { return self.has_turn_; });
}

double SimulatedNetwork::Run(const std::function<absl::Status(Transport&)>& body) {
  ranks_.clear();
  stuck_ = false;
  out_free_.assign(static_cast<size_t>(nodes_.nodes()), 0);
  in_free_.assign(static_cast<size_t>(nodes_.nodes()), 0);
  for (int rank = 0; rank < nodes_.world(); ++rank)
    ranks_.push_back(std::make_unique<RankTransport>(*this, rank));
  ranks_.front()->has_turn_ = true;
  std::vector<std::thread> threads;
  for (const auto& rank : ranks_) {
    threads.emplace_back([this, &body, self = rank.get()] {
      {
        std::unique_lock lock(mutex_);
        self->turn_.wait(lock, [&] { return self->has_turn_; });
      }
      absl::Status status = self->Begin(Operation(), Scope());
      if (status.ok()) status = body(*self);
      if (status.ok()) status = self->Finish();
      EXPECT_TRUE(status.ok()) << "rank " << self->rank_ << ": " << status;
      const std::unique_lock lock(mutex_);
      self->state_ = State::kDone;
      PassTurn();
    });
  }
  for (std::thread& thread : threads) thread.join();
  double last = 0;
  for (const auto& rank : ranks_) last = std::max(last, rank->clock_);
  return last;
}

size_t SimulatedNetwork::most_peers() const {
  size_t most = 0;
  for (const auto& rank : ranks_) most = std::max(most, rank->peers_.size());
  return most;
}

}  // namespace ringmaster::collectives::testing

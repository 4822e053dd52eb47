#include "runtime/train/inbox.h"

#include <utility>

#include <fmt/format.h>

namespace ringmaster::train {

void Inbox::Push(Command command) {
  std::lock_guard lock(mutex_);
  std::visit([this](auto&& kind) { Apply(std::move(kind)); }, std::move(command));
  Changed();
}

void Inbox::Close(const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (!stopped_ && !closed_) reason_ = reason;
  closed_ = true;
  Changed();
}

void Inbox::Apply(Round round) {
  if (round.number <= newest_round_) return;
  newest_round_ = round.number;
  if (!stopped_ && !closed_ && !draining_) reason_ = fmt::format("round {} begins", round.number);
  round_ = std::move(round);
}

void Inbox::Apply(Drain drain) {
  alone_ = drain.alone && (alone_ || !draining_);
  draining_ = true;
  if (!stopped_ && !closed_) reason_ = std::move(drain.reason);
}

void Inbox::Apply(CheckpointNow) {
  checkpoint_ = true;
}

void Inbox::Apply(Stop stop) {
  stopped_ = true;
  reason_ = std::move(stop.reason);
}

void Inbox::Apply(CheckpointCommitted committed) {
  committed_.push_back(std::move(committed));
}

bool Inbox::OverLocked() const {
  return stopped_ || closed_ || round_.has_value();
}

void Inbox::Changed() {
  if (OverLocked() && wake_) std::exchange(wake_, nullptr)(reason_);
  changed_.notify_all();
}

Wake Inbox::WaitForRound(Duration timeout) {
  std::unique_lock lock(mutex_);
  const bool woken = changed_.wait_for(lock, timeout, [this] { return OverLocked() || draining_; });
  if (!woken) return Wake::kDeadline;
  if (stopped_) return Wake::kStopped;
  if (closed_) return Wake::kClosed;
  return round_ ? Wake::kRound : Wake::kDrain;
}

std::optional<Round> Inbox::TakeRound() {
  std::lock_guard lock(mutex_);
  return std::exchange(round_, std::nullopt);
}

bool Inbox::RoundIsOver() const {
  std::lock_guard lock(mutex_);
  return OverLocked();
}

bool Inbox::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

bool Inbox::draining_alone() const {
  std::lock_guard lock(mutex_);
  return alone_;
}

std::string Inbox::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

bool Inbox::checkpoint_requested() const {
  std::lock_guard lock(mutex_);
  return checkpoint_;
}

void Inbox::CheckpointRequestIsMet() {
  std::lock_guard lock(mutex_);
  checkpoint_ = false;
}

std::vector<CheckpointCommitted> Inbox::TakeCommitted() {
  std::lock_guard lock(mutex_);
  return std::exchange(committed_, {});
}

std::vector<CheckpointCommitted> Inbox::WaitForCommitted(Duration timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return OverLocked() || !committed_.empty(); });
  return std::exchange(committed_, {});
}

Inbox::Interrupt::Interrupt(Inbox& inbox, std::function<void(const std::string&)> wake)
    : inbox_(inbox) {
  std::lock_guard lock(inbox_.mutex_);
  inbox_.wake_ = std::move(wake);
  if (inbox_.OverLocked()) inbox_.Changed();
}

Inbox::Interrupt::~Interrupt() {
  std::lock_guard lock(inbox_.mutex_);
  inbox_.wake_ = nullptr;
}

}  // namespace ringmaster::train

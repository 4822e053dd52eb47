#include "launcher/rendezvous_session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace ringmaster::launcher {

using rendezvous::v1::FromWorker;
using rendezvous::v1::ToWorker;

namespace {

constexpr size_t kMaxTokenBytes = 64 << 10;
// An operator that is only slow, since all come at once, is not to get many times as much to do.
constexpr size_t kDialedAtOnce = 4;

}  // namespace

RendezvousSession::RendezvousSession(EventLoop& loop, Options options, Handlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      delay_(options_.first_delay),
      random_(std::random_device{}()) {
  TryNext();
}

RendezvousSession::~RendezvousSession() {
  DropAttempts();
  for (const EventLoop::TimerId timer : {dial_timer_, beat_timer_, close_timer_})
    loop_.Cancel(timer);
}

std::string RendezvousSession::NextAddress() {
  if (std::exchange(leader_named_, false)) return leader_;
  const size_t turn = next_address_++ % (options_.addresses.size() + (leader_.empty() ? 0 : 1));
  return turn < options_.addresses.size() ? options_.addresses[turn] : leader_;
}

// Dials one more address, and then another each time that the head start is over.
void RendezvousSession::TryNext() {
  dial_timer_ = loop_.After(options_.head_start, [this] { TryNext(); });
  if (attempts_.size() >= kDialedAtOnce) return;
  const int number = ++last_attempt_;
  Attempt& attempt = attempts_[number];
  attempt.address = NextAddress();
  attempt.over = loop_.After(options_.connect_timeout, [this, number] {
    Failed(number, fmt::format("no connection in {}", FormatDuration(options_.connect_timeout)));
  });
  attempt.stream =
      RendezvousStream::Dial(loop_, attempt.address, options_.ca_pem,
                             {.connected = [this, number] { Connected(number); },
                              .message = [this](const ToWorker& message) { Take(message); },
                              .written =
                                  [this] {
                                    writing_ = false;
                                    Pump();
                                  },
                              .ended =
                                  [this, number](const absl::Status& status) {
                                    if (attempts_.contains(number))
                                      return Failed(number, Message(status));
                                    Ended(status);
                                  }});
}

void RendezvousSession::Connected(int attempt) {
  attempts_.at(attempt).connected = true;
  if (stream_ == nullptr) Ask(attempt);
}

// The others go on: this one may be a standby that is faster than a leader to whom all come.
void RendezvousSession::Ask(int number) {
  Attempt& attempt = attempts_.at(number);
  stream_ = std::move(attempt.stream);
  address_ = attempt.address;
  loop_.Cancel(attempt.over);
  loop_.Cancel(dial_timer_);
  attempts_.erase(number);
  accepted_ = writing_ = heartbeat_due_ = writes_done_ = false;
  heard_ = last_beat_ = SystemClock().SteadyNow();
  heartbeat_ = timeout_ = options_.answer_timeout;
  outbox_.Rewind();
  SayHello();
  loop_.Cancel(beat_timer_);
  beat_timer_ = loop_.After(options_.answer_timeout, [this] { Beat(); });
}

void RendezvousSession::Failed(int number, const std::string& why) {
  const auto attempt = attempts_.find(number);
  if (attempt->second.address == leader_) leader_.clear();
  if (stream_ == nullptr) address_ = attempt->second.address;
  loop_.Cancel(attempt->second.over);
  attempts_.erase(attempt);
  if (attempts_.empty() && stream_ == nullptr) Lost(why);
}

void RendezvousSession::DropAttempts() {
  loop_.Cancel(dial_timer_);
  for (const auto& [number, attempt] : attempts_) loop_.Cancel(attempt.over);
  attempts_.clear();
}

void RendezvousSession::SayHello() {
  if (!options_.token_file.empty()) {
    // Without one the operator refuses; the next dial reads again.
    const auto token = ReadFile(options_.token_file, kMaxTokenBytes);
    if (!token.ok()) log::Warning("cannot read the pod's token", {{"error", token.status()}});
    options_.hello.set_token(token.value_or(""));
  }
  said_leaving_ = options_.hello.leaving();
  FromWorker message;
  *message.mutable_hello() = options_.hello;
  Write(message);
}

// Half of the delay is chance, so that the workers of a job do not come back all at once.
Duration RendezvousSession::NextDelay() {
  const Duration delay = delay_;
  delay_ = std::min(2 * delay_, options_.longest_delay);
  std::uniform_int_distribution<std::int64_t> part(delay.count() / 2, delay.count());
  return Duration(part(random_));
}

void RendezvousSession::Lost(const std::string& why) {
  if (std::exchange(why_away_, why) != why) {
    log::Warning("the operator is away; the program goes on",
                 {{"address", address_}, {"why", why}});
  }
  stream_.reset();
  // One that accepts and ends the stream at once is dialed less and less often, too.
  if (accepted_ && SystemClock().SteadyNow() - accepted_since_ >= options_.longest_delay)
    delay_ = options_.first_delay;
  accepted_ = false;
  loop_.Cancel(beat_timer_);
  if (refused_) return FinishClosing(false);
  for (const auto& [number, attempt] : attempts_) {
    if (attempt.connected) return Ask(number);
  }
  loop_.Cancel(dial_timer_);
  dial_timer_ = loop_.After(NextDelay(), [this] { TryNext(); });
}

void RendezvousSession::Ended(const absl::Status& status) {
  if (writes_done_ && status.ok()) return FinishClosing(true);
  Lost(status.ok() ? "it closed the stream" : Message(status));
}

void RendezvousSession::Take(const ToWorker& message) {
  heard_ = SystemClock().SteadyNow();
  if (message.has_accepted()) return TakeAccepted(message.accepted());
  if (message.has_refused()) return TakeRefused(message.refused());
  if (message.has_command()) handlers_.command(message.command());
}

void RendezvousSession::TakeAccepted(const rendezvous::v1::Accepted& accepted) {
  log::Info("joined the rendezvous", {{"job", options_.hello.job()},
                                      {"pod", options_.hello.pod()},
                                      {"round", options_.hello.round()}});
  accepted_ = true;
  accepted_since_ = heard_;
  DropAttempts();
  if (address_ != leader_) leader_.clear();
  why_away_.clear();
  heartbeat_ = std::chrono::milliseconds(std::max<std::int64_t>(accepted.heartbeat_ms(), 1));
  timeout_ = std::chrono::milliseconds(std::max<std::int64_t>(accepted.timeout_ms(), 1));
  loop_.Cancel(beat_timer_);
  last_beat_ = heard_;
  beat_timer_ = loop_.After(heartbeat_, [this] { Beat(); });
  Pump();
}

void RendezvousSession::TakeRefused(const rendezvous::v1::Refused& refused) {
  if (refused.permanent()) {
    if (options_.hello.leaving() && !said_leaving_) return;  // the next Hello says so
    refused_ = true;
    log::Error("refused by the operator", {{"reason", refused.reason()}});
    return handlers_.refused(refused.reason());
  }
  if (refused.leader().empty()) return;  // the stream's end follows, and then the next dial
  leader_ = refused.leader();
  leader_named_ = std::none_of(attempts_.begin(), attempts_.end(), [this](const auto& entry) {
    return entry.second.address == leader_;
  });
}

void RendezvousSession::Beat() {
  const SteadyTime now = SystemClock().SteadyNow();
  // This process stood still itself, so the operator's words may only be waiting to be read.
  const auto late = now - last_beat_ - heartbeat_;
  if (late > heartbeat_) heard_ += late;
  last_beat_ = now;
  if (now - heard_ >= timeout_) {
    const auto silence = std::chrono::duration_cast<Duration>(now - heard_);
    return Lost(fmt::format("not heard of for {}", FormatDuration(silence)));
  }
  heartbeat_due_ = accepted_;
  beat_timer_ = loop_.After(heartbeat_, [this] { Beat(); });
  Pump();
}

void RendezvousSession::Pump() {
  if (!accepted_ || writing_ || writes_done_) return;
  FromWorker message;
  if (std::exchange(heartbeat_due_, false)) {
    message.mutable_heartbeat()->set_sequence(++sequence_);
    message.mutable_heartbeat()->set_round(options_.hello.round());
    return Write(message);
  }
  if (auto event = outbox_.Next()) {
    *message.mutable_event() = *std::move(event);
    return Write(message);
  }
  if (closed_) {
    writes_done_ = true;
    stream_->WritesDone();
  }
}

void RendezvousSession::Write(const FromWorker& message) {
  writing_ = true;
  stream_->Write(message);
}

void RendezvousSession::Report(rendezvous::v1::Event event) {
  outbox_.Add(std::move(event));
  Pump();
}

void RendezvousSession::EnterRound(std::int64_t round) {
  options_.hello.set_round(round);
  outbox_.EnterRound(round);
  heartbeat_due_ = accepted_;
  Pump();
}

void RendezvousSession::Close(Duration patience, std::function<void(bool)> done) {
  closed_ = std::move(done);
  Hasten(refused_ ? Duration(0) : patience);
  Pump();
}

void RendezvousSession::Hasten(Duration patience) {
  if (!closed_) return;
  const SteadyTime until = SystemClock().SteadyNow() + patience;
  if (until >= close_by_) return;
  close_by_ = until;
  loop_.Cancel(close_timer_);
  close_timer_ = loop_.After(patience, [this] { FinishClosing(false); });
}

void RendezvousSession::FinishClosing(bool told) {
  if (!told && closed_) log::Warning("left before the operator had stored what it was told");
  for (const EventLoop::TimerId timer : {dial_timer_, beat_timer_, close_timer_})
    loop_.Cancel(timer);
  DropAttempts();
  stream_.reset();
  accepted_ = false;
  if (closed_) std::exchange(closed_, nullptr)(told);
}

}  // namespace ringmaster::launcher

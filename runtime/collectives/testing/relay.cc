#include "runtime/collectives/testing/relay.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <utility>

#include <sys/socket.h>

#include "common/check.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives::testing {
namespace {

using std::chrono::steady_clock;

constexpr size_t kGulpBytes = 64 * 1024;
constexpr int kRelayAddress = 99;  // of LoopbackAddress; far from any rank's

void ResetOnClose(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace

Relay::Relay() : thread_([this] { Loop(); }) {}

Relay::~Relay() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.Signal();
  thread_.join();
}

std::string Relay::Open(const std::string& target) {
  const auto wanted = tcp::ParseAddress(LoopbackAddress(kRelayAddress));
  const auto to = tcp::ParseAddress(target);
  RM_CHECK(wanted.ok() && to.ok(), "not an address");
  auto listening = tcp::ListenAt(*wanted);
  RM_CHECK(listening.ok(), "the relay cannot listen");
  const auto address = tcp::LocalAddress(listening->get());
  RM_CHECK(address.ok(), "the relay has no address");
  const std::lock_guard lock(mutex_);
  doors_.push_back({*std::move(listening), *to});
  wake_.Signal();
  return tcp::FormatAddress(*address);
}

void Relay::Enter(Mode mode) {
  mode_ = mode;
  if (mode == Mode::kReset) ResetAll();
  wake_.Signal();
}

void Relay::Pass() {
  const std::lock_guard lock(mutex_);
  ResetAll();
  bytes_ = 0;
  limit_ = UINT64_MAX;
  most_ = SIZE_MAX;
  rest_ = {};
  to_drop_ = 0;
  flip_at_ = UINT64_MAX;
  garbles_ = false;
  records_ = false;
  recorded_.clear();
  Enter(Mode::kPass);
}

void Relay::Freeze() {
  const std::lock_guard lock(mutex_);
  Enter(Mode::kFrozen);
}

void Relay::Reset() {
  const std::lock_guard lock(mutex_);
  Enter(Mode::kReset);
}

void Relay::ResetAfter(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes_ + bytes;
}

void Relay::Chop(size_t bytes, std::chrono::microseconds rest) {
  const std::lock_guard lock(mutex_);
  most_ = bytes;
  rest_ = rest;
}

void Relay::Flip(uint64_t at) {
  const std::lock_guard lock(mutex_);
  flip_at_ = bytes_ + at;
}

void Relay::Garble() {
  const std::lock_guard lock(mutex_);
  garbles_ = true;
}

void Relay::Record() {
  const std::lock_guard lock(mutex_);
  records_ = true;
}

std::string Relay::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

void Relay::DropNext(int count) {
  const std::lock_guard lock(mutex_);
  to_drop_ = count;
}

uint64_t Relay::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

bool Relay::AwaitBytes(uint64_t bytes, std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return passed_on_.wait_for(lock, patience, [&] { return bytes_ >= bytes; });
}

void Relay::ResetAll() {
  for (const Connection& connection : connections_) {
    for (const UniqueFd& end : connection.ends) ResetOnClose(end.get());
  }
  connections_.clear();
}

void Relay::Loop() {
  std::vector<pollfd> polled;
  gulp_.resize(kGulpBytes);
  while (true) {
    polled.assign({{wake_.fd(), POLLIN, 0}});
    int timeout_ms = -1;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      const SteadyTime now = steady_clock::now();
      for (auto it = connections_.begin(); it != connections_.end();) {
        const auto connection = it++;
        if (mode_ == Mode::kFrozen) break;
        const bool whole = Move(*connection, now);
        if (whole && !connection->over()) continue;
        if (!whole) {
          for (const UniqueFd& end : connection->ends) ResetOnClose(end.get());
        }
        connections_.erase(connection);
      }
      if (bytes_ >= limit_ && mode_ == Mode::kPass) Enter(Mode::kReset);
      for (Door& door : doors_) {
        if (mode_ != Mode::kFrozen) Accept(door);
        polled.push_back({mode_ == Mode::kFrozen ? -1 : door.listening.get(), POLLIN, 0});
      }
      for (const Connection& connection : connections_) {
        if (mode_ == Mode::kFrozen) break;
        for (int from = 0; from < 2; ++from) {
          const Direction& direction = connection.directions[from];
          if (direction.held.empty()) {
            if (!direction.ended) polled.push_back({connection.ends[from].get(), POLLIN, 0});
          } else if (direction.next > now) {
            timeout_ms = 1;
          } else {
            polled.push_back({connection.ends[1 - from].get(), POLLOUT, 0});
          }
        }
      }
    }
    poll(polled.data(), polled.size(), timeout_ms);
    if (polled[0].revents != 0) wake_.Drain();
  }
}

void Relay::Accept(Door& door) {
  while (true) {
    UniqueFd dialer(accept4(door.listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!dialer.valid()) return;
    auto target = tcp::StartConnecting(door.target, {});
    if (mode_ == Mode::kReset || !target.ok()) {
      ResetOnClose(dialer.get());
      continue;
    }
    Connection& connection = connections_.emplace_back();
    connection.ends[0] = std::move(dialer);
    connection.ends[1] = *std::move(target);
    connection.doomed = to_drop_ > 0;
    if (connection.doomed) --to_drop_;
    wake_.Signal();
  }
}

bool Relay::Move(Connection& connection, SteadyTime now) {
  for (int from = 0; from < 2; ++from) {
    if (!MoveOneWay(connection, from, now)) return false;
  }
  return true;
}

// From now on, which on a busy machine is not when the loop last looked.
void Relay::Rest(Direction& direction) const {
  if (rest_.count() > 0) direction.next = steady_clock::now() + rest_;
}

bool Relay::MoveOneWay(Connection& connection, int from, SteadyTime now) {
  Direction& direction = connection.directions[from];
  const int source = connection.ends[from].get();
  const int sink = connection.ends[1 - from].get();
  if (direction.held.empty() && !direction.ended) {
    const ssize_t got = recv(source, gulp_.data(), gulp_.size(), 0);
    const bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (got > 0) direction.held.assign(gulp_.begin(), gulp_.begin() + got);
    direction.ended = got <= 0 && !later;
    if (garbles_) {
      for (std::byte& byte : direction.held) byte ^= std::byte{0xA5};
    }
    if (got > 0) Rest(direction);
  }
  if (connection.doomed && !direction.held.empty()) return false;
  if (!direction.held.empty() && direction.next <= now) {
    const size_t most = std::min<uint64_t>({direction.held.size(), most_, limit_ - bytes_});
    if (flip_at_ - bytes_ < most) {
      direction.held[flip_at_ - bytes_] ^= std::byte{0x10};
      flip_at_ = UINT64_MAX;
    }
    const ssize_t put = send(sink, direction.held.data(), most, MSG_NOSIGNAL);
    if (put < 0 && errno != EAGAIN && errno != EINTR) {
      // Nobody reads there any more. What it sent before is on its way all the same, as in a
      // network, where a reset does not overtake it.
      direction.held.clear();
      direction.ended = direction.closed = true;
    }
    if (put > 0) {
      if (records_) {
        const auto* first = reinterpret_cast<const char*>(direction.held.data());
        recorded_.append(first, static_cast<size_t>(put));
      }
      direction.held.erase(direction.held.begin(), direction.held.begin() + put);
      bytes_ += static_cast<uint64_t>(put);
      passed_on_.notify_all();
      Rest(direction);
    }
  }
  if (direction.ended && direction.held.empty() && !direction.closed) {
    direction.closed = true;
    shutdown(sink, SHUT_WR);
  }
  return true;
}

}  // namespace ringmaster::collectives::testing

#include "runtime/collectives/testing/fault_yard.h"

#include <atomic>
#include <barrier>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster::collectives::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr milliseconds kOperationTimeout = kImpatience;
constexpr milliseconds kConnectTimeout = kImpatience;
constexpr milliseconds kSlack{8000};  // for a busy machine

std::string NameOf(Fault fault) {
  static constexpr const char* kNames[] = {"killed", "stopped", "cut off", "garbled"};
  return kNames[static_cast<size_t>(fault)];
}

size_t EntriesOf(const char* directory) {
  const auto entries = std::filesystem::directory_iterator(directory);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

// A thread stays listed for a moment after it was joined, now or when they were counted before.
void ExpectThreads(size_t most) {
  const auto deadline = steady_clock::now() + kPatience;
  while (EntriesOf("/proc/self/task") > most && steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_LE(EntriesOf("/proc/self/task"), most);
}

// What became of a rank.
struct Outcome {
  absl::Status status;
  int suspect = -1;
  bool in_time = false;
};

// A connection that ends says so itself, and what is no frame is found out as it comes: no
// time-out has to pass where all are connected. A rank that nobody has reached yet might only be
// late.
bool FoundAtOnce(const FaultCase& c) {
  return (c.fault == Fault::kKilled || c.fault == Fault::kGarbled) && c.connected;
}

milliseconds Most(const FaultCase& c) {
  return FoundAtOnce(c) ? kSlack : kConnectTimeout + kOperationTimeout + kSlack;
}

// Connected before, all survivors name the victim, at the latest in the barrier. In the first
// operation some may wait to be dialed by a rank that waits for the victim itself, and name that
// one. What the victim needs may have come before; it must end as well.
void Judge(const FaultCase& c, int rank, const Outcome& outcome) {
  SCOPED_TRACE(c.Name(rank));
  const std::string text = Message(outcome.status);
  EXPECT_NE(outcome.status.code(), absl::StatusCode::kInternal) << text;
  EXPECT_TRUE(outcome.in_time) << text;
  if (rank == c.victim) return;
  EXPECT_FALSE(outcome.status.ok());
  EXPECT_TRUE(IsNamedIn(text, *c.call, "after")) << text;
  EXPECT_THAT(text, HasSubstr("operation "));
  if (!c.connected && text.find("has not connected") != std::string::npos) return;
  EXPECT_EQ(outcome.suspect, c.victim) << text;
  if (FoundAtOnce(c) && c.fault == Fault::kGarbled) {
    // The victim, too, hears nonsense; when it ends the connection for that, its last words may
    // go with it.
    EXPECT_THAT(text, AnyOf(HasSubstr("what it sent is not a frame"), HasSubstr("failed in TLS"),
                            HasSubstr("lost the connection")));
  } else if (FoundAtOnce(c)) {
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable) << text;
  }
  EXPECT_THAT(text, HasSubstr(fmt::format("rank {} (", c.victim)));
}

}  // namespace

std::string FaultCase::Name(int rank) const {
  return fmt::format("{}, rank {} {} at step {} of {}, {}: rank {}", call->name, victim,
                     NameOf(fault), at, phase.empty() ? "all" : phase,
                     connected ? "connected before" : "in the first operation", rank);
}

FaultYard::FaultYard(int world, Wires wires) : world_(world), group_(world, wires) {
  Use({});
  SetTimeouts(kConnectTimeout, kOperationTimeout);
  for (int rank = 0; rank < world_; ++rank)
    doors_.push_back(relay_.Open(group_.options.members[rank].address));
}

void FaultYard::Use(const FaultLoad& load) {
  group_.options.segment_bytes = load.segment_bytes;
  group_.options.shared_memory_bytes = load.shared_memory_bytes;
}

std::vector<std::string_view> FaultYard::PhasesOf(const Call& call, int victim) {
  Tripwire wire;
  SetTimeouts(kPatience, kPatience);
  Round(call, victim, wire, [&](int rank, Communicator& comm) {
    if (rank == victim) wire.armed = true;
    EXPECT_TRUE(call.run(comm).ok()) << call.name << ": " << comm.status();
  });
  SetTimeouts(kConnectTimeout, kOperationTimeout);
  bytes_ = relay_.bytes();
  return wire.phases;
}

std::optional<std::string_view> FaultYard::Play(const FaultCase& c) {
  if (FoundAtOnce(c)) SetTimeouts(kPatience, kPatience);
  Tripwire wire;
  wire.at = c.at;
  wire.phase = c.phase;
  std::atomic<int> left = world_ - 1;
  std::promise<void> all_failed;
  std::shared_future<void> over = all_failed.get_future().share();
  std::barrier met(world_);
  std::atomic<steady_clock::time_point> tripped{steady_clock::now()};
  wire.trip = [&] {
    tripped = steady_clock::now();
    if (c.fault == Fault::kCutOff) relay_.Freeze();
    if (c.fault == Fault::kGarbled) relay_.Garble();
    if (c.fault == Fault::kStopped) over.wait_for(kPatience);
    if (c.fault != Fault::kKilled) return;
    relay_.Reset();
    wire.Abort("killed");
  };
  std::vector<Outcome> outcomes(static_cast<size_t>(world_));
  Round(*c.call, c.victim, wire, [&](int rank, Communicator& comm) {
    const bool is_victim = rank == c.victim;
    if (c.connected) Meet(comm, met);
    if (is_victim) wire.armed = true;
    absl::Status status = c.call->run(comm);
    if (is_victim) {
      wire.armed = false;
      if (wire.trip) wire.trip();  // it makes less steps now and then, as it need not wait
    }
    if (status.ok()) status = comm.Barrier("after");
    const auto took = steady_clock::now() - tripped.load();
    outcomes[static_cast<size_t>(rank)] = {status, comm.suspect(), took < Most(c)};
    if (!is_victim && --left == 0) all_failed.set_value();
  });
  for (int rank = 0; rank < world_; ++rank) Judge(c, rank, outcomes[static_cast<size_t>(rank)]);
  relay_.Pass();
  ExpectNextRoundWorks(c);
  return wire.tripped_in;
}

void FaultYard::PlayLate(const Call& call, int late, milliseconds timeout, bool connected) {
  SetTimeouts(timeout, timeout);
  Tripwire wire;
  std::barrier met(world_);
  Round(call, late, wire, [&](int rank, Communicator& comm) {
    if (connected) Meet(comm, met);
    if (rank == late) std::this_thread::sleep_for(timeout * 6 / 10);
    absl::Status status = call.run(comm);
    if (status.ok()) status = comm.Barrier("after");
    EXPECT_TRUE(status.ok()) << call.name << ", rank " << late << " late: rank " << rank << ": "
                             << status;
    EXPECT_EQ(comm.suspect(), -1) << call.name;
  });
}

void FaultYard::PlayResetAfter(const Call& call, int victim, uint64_t bytes) {
  SCOPED_TRACE(fmt::format("{}, rank {} reset after {} bytes", call.name, victim, bytes));
  Tripwire wire;
  std::vector<Outcome> outcomes(static_cast<size_t>(world_));
  Round(
      call, victim, wire,
      [&](int rank, Communicator& comm) {
        const auto start = steady_clock::now();
        absl::Status status = call.run(comm);
        if (status.ok()) status = comm.Barrier("after");
        const auto took = steady_clock::now() - start;
        outcomes[static_cast<size_t>(rank)] = {
            status, comm.suspect(), took < 2 * (kConnectTimeout + kOperationTimeout) + kSlack};
      },
      bytes);
  for (const Outcome& outcome : outcomes) {
    EXPECT_NE(outcome.status.code(), absl::StatusCode::kInternal) << outcome.status;
    EXPECT_TRUE(outcome.in_time) << outcome.status;
  }
  relay_.Pass();
}

// A round in which each rank runs `body` and none leaves before all are done.
void FaultYard::Round(const Call& call, int victim, Tripwire& wire,
                      const std::function<void(int, Communicator&)>& body, uint64_t reset_after) {
  ++group_.options.round;
  group_.options.algorithm = call.algorithm;
  relay_.Pass();
  if (reset_after != UINT64_MAX) relay_.ResetAfter(reset_after);
  std::barrier done(world_);
  RunThreads(world_, [&](int rank) {
    const TimelineTrack track(rank == victim ? timeline_.get() : nullptr, "victim");
    const auto comm = Open(rank, victim, wire);
    body(rank, *comm);
    done.arrive_and_wait();
  });
}

// The lower rank dials: those below the victim its door, and it those of the ranks above it.
std::unique_ptr<Communicator> FaultYard::Open(int rank, int victim, Tripwire& wire) {
  CommunicatorOptions options = group_.OptionsFor(rank);
  for (int other = 0; other < world_; ++other) {
    const bool through = rank == victim || other == victim;
    if (through) options.members[other].address = doors_[static_cast<size_t>(other)];
  }
  return OpenTripped(options, group_.listener(rank), rank == victim ? &wire : nullptr);
}

void FaultYard::ExpectNextRoundWorks(const FaultCase& c) {
  SetTimeouts(kPatience, kPatience);
  group_.Run([&](Communicator& comm) {
    EXPECT_TRUE(comm.Barrier("next round").ok()) << c.Name(comm.rank()) << comm.status();
  });
  SetTimeouts(kConnectTimeout, kOperationTimeout);
}

void FaultYard::SetTimeouts(milliseconds connect, milliseconds operation) {
  group_.options.connect_timeout = connect;
  group_.options.operation_timeout = operation;
}

void PlayAll(int world, Wires wires, size_t jobs,
             const std::function<void(FaultYard&, size_t)>& play, int at_once) {
  // With the first thread a sanitizer may start one of its own, which stays.
  RunThreads(1, [](int) {});
  const size_t descriptors = EntriesOf("/proc/self/fd");
  const size_t threads = EntriesOf("/proc/self/task");
  std::atomic<size_t> next = 0;
  RunThreads(at_once, [&](int) {
    FaultYard yard(world, wires);
    for (size_t job = next++; job < jobs; job = next++) play(yard, job);
  });
  EXPECT_EQ(EntriesOf("/proc/self/fd"), descriptors);
  ExpectThreads(threads);
}

}  // namespace ringmaster::collectives::testing

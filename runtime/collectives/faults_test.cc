// Every operation by every algorithm while one rank is killed, stopped, cut off or garbled, in each
// of its phases and at points spread over what it does: whoever is left ends in time, names that
// rank and the operation, and the next round works.
//
// Ranks are threads. What reaches or leaves the victim goes through a relay, which resets its
// connections (killed), lets nothing through any more (cut off), or other bytes than came
// (garbled); a stopped one does not go on until the others are done. The moment is a step of the
// victim's: the n-th time that its algorithm posts a message or has waited for one. Several cases
// run at once, as they mostly wait.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/temporary_folder.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/testing/tripwire.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AnyOf;
using testing::Call;
using testing::Group;
using ::testing::HasSubstr;
using testing::kCallWorld;
using testing::Relay;
using testing::Tripwire;
using testing::Wires;

constexpr milliseconds kOperationTimeout = testing::kImpatience;
constexpr milliseconds kConnectTimeout = testing::kImpatience;
constexpr milliseconds kSlack{8000};  // for a busy machine
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr int kAtOnce = kSanitized ? 6 : 14;  // cases
constexpr int kPoints = 8;                    // of what takes a time-out each

enum class Fault { kKilled, kStopped, kCutOff, kGarbled };

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
  const auto deadline = steady_clock::now() + testing::kPatience;
  while (EntriesOf("/proc/self/task") > most && steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_LE(EntriesOf("/proc/self/task"), most);
}

struct Case {
  const Call* call;
  Fault fault;
  int victim;
  int at;             // the victim's step
  std::string phase;  // in this phase; empty: of all
  bool connected;     // before; else all connections are made by the operation itself

  std::string Name(int rank) const {
    return fmt::format("{}, rank {} {} at step {} of {}, {}: rank {}", call->name, victim,
                       NameOf(fault), at, phase.empty() ? "all" : phase,
                       connected ? "connected before" : "in the first operation", rank);
  }
};

// How long arrays and their pieces are, and what of them fits between two ranks that share memory;
// 0: as much as usual. And which calls are played; none: all.
struct Load {
  size_t count = testing::kCallCount;
  size_t shared_memory_bytes = 0;
  size_t segment_bytes = testing::kCallSegmentBytes;
  std::vector<std::string> names{};
  int at_once = kAtOnce;
};

// What became of a rank.
struct Outcome {
  absl::Status status;
  int suspect = -1;
  bool in_time = false;
};

// A place to play cases in, one after another: a listener for each rank, and the relay around
// the victim.
class Yard {
 public:
  Yard(int world, Wires wires) : world_(world), group_(world, wires) {
    Use({});
    SetTimeouts(kConnectTimeout, kOperationTimeout);
    for (int rank = 0; rank < world_; ++rank)
      doors_.push_back(relay_.Open(group_.options.members[rank].address));
  }

  // From the next round on.
  void Use(const Load& load) {
    group_.options.segment_bytes = load.segment_bytes;
    group_.options.shared_memory_bytes = load.shared_memory_bytes;
  }

  // In which phase each step is that `victim` makes in the call.
  std::vector<std::string_view> PhasesOf(const Call& call, int victim) {
    Tripwire wire;
    SetTimeouts(testing::kPatience, testing::kPatience);
    Round(call, victim, wire, [&](int rank, Communicator& comm) {
      if (rank == victim) wire.armed = true;
      EXPECT_TRUE(call.run(comm).ok()) << call.name << ": " << comm.status();
    });
    SetTimeouts(kConnectTimeout, kOperationTimeout);
    bytes_ = relay_.bytes();
    return wire.phases;
  }
  // That went through the relay meanwhile.
  uint64_t bytes() const { return bytes_; }

  // In which phase it struck; none where the operation was over.
  std::optional<std::string_view> Play(const Case& c) {
    if (FoundAtOnce(c)) SetTimeouts(testing::kPatience, testing::kPatience);
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
      if (c.fault == Fault::kStopped) over.wait_for(testing::kPatience);
      if (c.fault != Fault::kKilled) return;
      relay_.Reset();
      wire.Abort("killed");
    };
    std::vector<Outcome> outcomes(static_cast<size_t>(world_));
    Round(*c.call, c.victim, wire, [&](int rank, Communicator& comm) {
      const bool is_victim = rank == c.victim;
      if (c.connected) testing::Meet(comm, met);
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

  // `late` comes later than the others, by 0.6 of the time-outs, which is no fault of anybody's.
  void PlayLate(const Call& call, int late, milliseconds timeout, bool connected) {
    SetTimeouts(timeout, timeout);
    Tripwire wire;
    std::barrier met(world_);
    Round(call, late, wire, [&](int rank, Communicator& comm) {
      if (connected) testing::Meet(comm, met);
      if (rank == late) std::this_thread::sleep_for(timeout * 6 / 10);
      absl::Status status = call.run(comm);
      if (status.ok()) status = comm.Barrier("after");
      EXPECT_TRUE(status.ok()) << call.name << ", rank " << late << " late: rank " << rank << ": "
                               << status;
      EXPECT_EQ(comm.suspect(), -1) << call.name;
    });
  }

  // The relay resets everything of `victim` when so many bytes have come through.
  void PlayResetAfter(const Call& call, int victim, uint64_t bytes) {
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

 private:
  // A connection that ends says so itself, and what is no frame is found out as it comes: no
  // time-out has to pass where all are connected. A rank that nobody has reached yet might only be
  // late.
  static bool FoundAtOnce(const Case& c) {
    return (c.fault == Fault::kKilled || c.fault == Fault::kGarbled) && c.connected;
  }

  static milliseconds Most(const Case& c) {
    return FoundAtOnce(c) ? kSlack : kConnectTimeout + kOperationTimeout + kSlack;
  }

  // A round in which each rank runs `body` and none leaves before all are done.
  void Round(const Call& call, int victim, Tripwire& wire,
             const std::function<void(int, Communicator&)>& body,
             uint64_t reset_after = UINT64_MAX) {
    ++group_.options.round;
    group_.options.algorithm = call.algorithm;
    relay_.Pass();
    if (reset_after != UINT64_MAX) relay_.ResetAfter(reset_after);
    std::barrier done(world_);
    testing::RunThreads(world_, [&](int rank) {
      const TimelineTrack track(rank == victim ? timeline_.get() : nullptr, "victim");
      const auto comm = Open(rank, victim, wire);
      body(rank, *comm);
      done.arrive_and_wait();
    });
  }

  // The lower rank dials: those below the victim its door, and it those of the ranks above it.
  std::unique_ptr<Communicator> Open(int rank, int victim, Tripwire& wire) {
    CommunicatorOptions options = group_.OptionsFor(rank);
    for (int other = 0; other < world_; ++other) {
      const bool through = rank == victim || other == victim;
      if (through) options.members[other].address = doors_[static_cast<size_t>(other)];
    }
    return testing::OpenTripped(options, group_.listener(rank), rank == victim ? &wire : nullptr);
  }

  // Connected before, all survivors name the victim, at the latest in the barrier. In the first
  // operation some may wait to be dialed by a rank that waits for the victim itself, and name that
  // one. What the victim needs may have come before; it must end as well.
  static void Judge(const Case& c, int rank, const Outcome& outcome) {
    SCOPED_TRACE(c.Name(rank));
    const std::string text = Message(outcome.status);
    EXPECT_NE(outcome.status.code(), absl::StatusCode::kInternal) << text;
    EXPECT_TRUE(outcome.in_time) << text;
    if (rank == c.victim) return;
    EXPECT_FALSE(outcome.status.ok());
    EXPECT_TRUE(testing::IsNamedIn(text, *c.call, "after")) << text;
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

  void ExpectNextRoundWorks(const Case& c) {
    SetTimeouts(testing::kPatience, testing::kPatience);
    group_.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("next round").ok()) << c.Name(comm.rank()) << comm.status();
    });
    SetTimeouts(kConnectTimeout, kOperationTimeout);
  }

  void SetTimeouts(milliseconds connect, milliseconds operation) {
    group_.options.connect_timeout = connect;
    group_.options.operation_timeout = operation;
  }

  const int world_;
  Group group_;
  Relay relay_;
  std::vector<std::string> doors_;
  uint64_t bytes_ = 0;
  // Only to know the phase that a rank is in: nobody looks at the file.
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::unique_ptr<Timeline> timeline_ =
      Timeline::Open(folder_.path() / "timeline.json", 0, "victim", {.most_bytes = 1}).value();
};

// Runs `play(yard, job)` for each job, several at a time, each in a yard; nothing may be left over.
void PlayAll(int world, Wires wires, size_t jobs, const std::function<void(Yard&, size_t)>& play,
             int at_once = kAtOnce) {
  // With the first thread a sanitizer may start one of its own, which stays.
  testing::RunThreads(1, [](int) {});
  const size_t descriptors = EntriesOf("/proc/self/fd");
  const size_t threads = EntriesOf("/proc/self/task");
  std::atomic<size_t> next = 0;
  testing::RunThreads(at_once, [&](int) {
    Yard yard(world, wires);
    for (size_t job = next++; job < jobs; job = next++) play(yard, job);
  });
  EXPECT_EQ(EntriesOf("/proc/self/fd"), descriptors);
  ExpectThreads(threads);
}

// One call's cases: at `points` places spread over its steps, another victim each time, and in each
// phase besides that any victim goes through. `phases` has the victims' steps.
std::vector<Case> CasesOf(const Call& call, int number, Fault fault, int points,
                          const std::vector<std::vector<std::string_view>>& phases) {
  const int world = static_cast<int>(phases.size());
  std::vector<Case> cases;
  std::set<std::string> struck;
  for (int point = 0; point < points; ++point) {
    const int victim = (number + point) % world;
    const auto& steps = phases[static_cast<size_t>(victim)];
    const int at = static_cast<int>(std::ssize(steps) - 1) * point / (points - 1);
    const bool connected = (number + point / world + point) % 2 == 0;
    cases.push_back({&call, fault, victim, at, "", connected});
  }
  for (int i = 0; i < world; ++i) {
    const int victim = (number + i) % world;
    const auto& steps = phases[static_cast<size_t>(victim)];
    for (const auto& [phase, middle] : testing::MiddleOfEachPhase(steps)) {
      if (!struck.insert(phase).second) continue;
      const bool connected = (number + i + static_cast<int>(struck.size())) % 2 == 0;
      cases.push_back({&call, fault, victim, middle, phase, connected});
    }
  }
  return cases;
}

// Who is stopped or cut off is waited for until a time-out, so that many fit beside one another;
// who is garbled is found at once, and writes to all when it is.
void ExpectNamed(int world, Wires wires, Fault fault, int points, const Load& load = {}) {
  std::vector<Call> calls = testing::AllCalls(load.count);
  if (!load.names.empty()) {
    std::erase_if(calls, [&](const Call& call) {
      return std::ranges::find(load.names, call.name) == load.names.end();
    });
    ASSERT_EQ(calls.size(), load.names.size());
  }
  std::vector<std::vector<Case>> by_call(calls.size());
  PlayAll(
      world, wires, calls.size(),
      [&](Yard& yard, size_t job) {
        yard.Use(load);
        std::vector<std::vector<std::string_view>> phases;
        for (int rank = 0; rank < world; ++rank) phases.push_back(yard.PhasesOf(calls[job], rank));
        by_call[job] = CasesOf(calls[job], static_cast<int>(job), fault, points, phases);
      },
      load.at_once);
  std::vector<Case> cases;
  for (const auto& some : by_call) cases.insert(cases.end(), some.begin(), some.end());
  std::vector<std::optional<std::string_view>> struck(cases.size());
  PlayAll(
      world, wires, cases.size(),
      [&](Yard& yard, size_t job) {
        yard.Use(load);
        struck[job] = yard.Play(cases[job]);
      },
      fault == Fault::kKilled    ? load.at_once
      : fault == Fault::kGarbled ? load.at_once / 2
                                 : 3 * load.at_once);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].phase.empty()) {
      EXPECT_EQ(struck[i], cases[i].phase) << cases[i].Name(-1);
    }
  }
}

class FaultsTest : public ::testing::TestWithParam<Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, FaultsTest,
                         ::testing::Values(Wires::kShared, Wires::kTcp, Wires::kTls),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

TEST_P(FaultsTest, ARankThatIsKilledIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(kCallWorld, GetParam(), Fault::kKilled, 12);
}

TEST_P(FaultsTest, ARankThatIsStoppedIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(kCallWorld, GetParam(), Fault::kStopped, kPoints);
}

std::string NameOfFault(const ::testing::TestParamInfo<Fault>& fault) {
  return fault.param == Fault::kKilled ? "Killed" : "Stopped";
}

// Who sends waits for room, again and again, and is told while it does.
class LongFaultsTest : public ::testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(Faults, LongFaultsTest, ::testing::Values(Fault::kKilled, Fault::kStopped),
                         NameOfFault);

TEST_P(LongFaultsTest, ARankIsNamedInEveryPhaseOfEveryAlgorithmOfMoreThanMemoryBetweenRanksHolds) {
  ExpectNamed(kCallWorld, Wires::kShared, GetParam(), 4,
              {.count = 10'000, .shared_memory_bytes = 4096});
}

// Who hears of the death may be in the middle of a message that nobody takes any more.
TEST(LongFaultsOverTcpTest, AKilledRankIsNamedInEveryPhaseOfAlgorithmsOfMoreThanSocketsHold) {
  std::vector<std::string> names = {"allreduce by ring"};
  if (!kSanitized)
    names.insert(names.end(), {"allreduce by halving-doubling", "allreduce of groups"});
  ExpectNamed(kCallWorld, Wires::kTcp, Fault::kKilled, 2,
              {.count = 3 << 20, .segment_bytes = 1 << 20, .names = names, .at_once = 4});
}

// Memory within a node and TCP between nodes, as on a cluster.
class MixedFaultsTest : public ::testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(Faults, MixedFaultsTest,
                         ::testing::Values(Fault::kKilled, Fault::kStopped), NameOfFault);

TEST_P(MixedFaultsTest, ARankIsNamedInEveryPhaseOfEveryAlgorithmOfTwoLevels) {
  ExpectNamed(kCallWorld, Wires::kMixed, GetParam(), kPoints,
              {.names = {"allreduce by two levels and doubling",
                         "allreduce by two levels and halving-doubling",
                         "allreduce by two levels and ring", "broadcast by two levels"}});
}

// Not over shared memory: nothing lies between two ranks of one machine.
class CutOffTest : public ::testing::TestWithParam<Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, CutOffTest, ::testing::Values(Wires::kTcp, Wires::kTls),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

TEST_P(CutOffTest, ARankThatIsCutOffIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(kCallWorld, GetParam(), Fault::kCutOff, kPoints);
}

// What it says is nonsense from then on, and what it hears: found out at the next header.
TEST_P(CutOffTest, ARankWhoseBytesAreGarbledIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(kCallWorld, GetParam(), Fault::kGarbled, 4);
}

// Three, five and six ranks are no power of two, and lie on nodes of unequal size: some fold what
// they have into a neighbour's.
class UnevenFaultsTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, UnevenFaultsTest, ::testing::Values(3, 5, 6),
                         ::testing::PrintToStringParamName());

TEST_P(UnevenFaultsTest, ARankThatIsKilledIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(GetParam(), Wires::kTcp, Fault::kKilled, 4);
}

TEST(UnevenStopTest, ARankThatIsStoppedIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(5, Wires::kTcp, Fault::kStopped, kPoints);
}

TEST(UnevenCutOffTest, ARankThatIsCutOffIsNamedInEveryPhaseOfEveryAlgorithm) {
  ExpectNamed(5, Wires::kTcp, Fault::kCutOff, kPoints);
}

// It is late by 0.6 of what it may be, and the rest is as much as a busy machine may take besides.
TEST_P(FaultsTest, ARankThatIsSlowIsWaitedForAndNotBlamed) {
  constexpr milliseconds kTimeout = testing::kImpatience * 5 / 2;
  const std::vector<Call> calls = testing::AllCalls();
  PlayAll(
      kCallWorld, GetParam(), calls.size(),
      [&](Yard& yard, size_t job) {
        yard.PlayLate(calls[job], static_cast<int>(job) % kCallWorld, kTimeout, job / 4 % 2 == 0);
      },
      2 * kAtOnce);
}

// In the middle of a handshake, of a header, of a message; nothing hangs, and no number is wrong.
TEST_P(FaultsTest, AConnectionMayBreakAtAnyByte) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<Call> calls = testing::AllCalls();
  PlayAll(kCallWorld, GetParam(), calls.size(), [&](Yard& yard, size_t job) {
    std::mt19937 random(seed + static_cast<unsigned>(job));
    for (int victim = 0; victim < kCallWorld; ++victim) {
      yard.PhasesOf(calls[job], victim);
      const uint64_t all = yard.bytes();
      yard.PlayResetAfter(calls[job], victim, random() % (all + 1));
    }
  });
}

}  // namespace
}  // namespace ringmaster::collectives

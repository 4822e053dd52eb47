// Every operation by every algorithm while one rank is killed, stopped, cut off or garbled, in each
// of its phases and at points spread over what it does: whoever is left ends in time, names that
// rank and the operation, and the next round works. Several cases run at once, as they mostly wait.
#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/fault_yard.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/tripwire.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using testing::Call;
using testing::Fault;
using testing::FaultCase;
using testing::FaultLoad;
using testing::FaultYard;
using testing::kAtOnce;
using testing::kCallWorld;
using testing::kSanitized;
using testing::PlayAll;
using testing::Wires;

constexpr int kPoints = 8;  // of what takes a time-out each

// One call's cases: at `points` places spread over its steps, another victim each time, and in each
// phase besides that any victim goes through. `phases` has the victims' steps.
std::vector<FaultCase> CasesOf(const Call& call, int number, Fault fault, int points,
                               const std::vector<std::vector<std::string_view>>& phases) {
  const int world = static_cast<int>(phases.size());
  std::vector<FaultCase> cases;
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
void ExpectNamed(int world, Wires wires, Fault fault, int points, const FaultLoad& load = {}) {
  std::vector<Call> calls = testing::AllCalls(load.count);
  if (!load.names.empty()) {
    std::erase_if(calls, [&](const Call& call) {
      return std::ranges::find(load.names, call.name) == load.names.end();
    });
    ASSERT_EQ(calls.size(), load.names.size());
  }
  std::vector<std::vector<FaultCase>> by_call(calls.size());
  PlayAll(
      world, wires, calls.size(),
      [&](FaultYard& yard, size_t job) {
        yard.Use(load);
        std::vector<std::vector<std::string_view>> phases;
        for (int rank = 0; rank < world; ++rank) phases.push_back(yard.PhasesOf(calls[job], rank));
        by_call[job] = CasesOf(calls[job], static_cast<int>(job), fault, points, phases);
      },
      load.at_once);
  std::vector<FaultCase> cases;
  for (const auto& some : by_call) cases.insert(cases.end(), some.begin(), some.end());
  std::vector<std::optional<std::string_view>> struck(cases.size());
  PlayAll(
      world, wires, cases.size(),
      [&](FaultYard& yard, size_t job) {
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
      [&](FaultYard& yard, size_t job) {
        yard.PlayLate(calls[job], static_cast<int>(job) % kCallWorld, kTimeout, job / 4 % 2 == 0);
      },
      2 * kAtOnce);
}

// In the middle of a handshake, of a header, of a message; nothing hangs, and no number is wrong.
TEST_P(FaultsTest, AConnectionMayBreakAtAnyByte) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<Call> calls = testing::AllCalls();
  PlayAll(kCallWorld, GetParam(), calls.size(), [&](FaultYard& yard, size_t job) {
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

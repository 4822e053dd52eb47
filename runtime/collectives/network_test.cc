// Bad networks: every operation while bytes come late, in small pieces and over connections that
// break in the handshake, and over packets that are lost and overtake one another: those of a
// network of this process, and those that the kernel drops on its own.
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <sched.h>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/check.h"
#include "common/temporary_folder.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/packet_network.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/testing/tripwire.h"
#include "runtime/collectives/timeline.h"
#include "tests/support/skip.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Call;
using testing::Group;
using ::testing::HasSubstr;
using testing::kCallWorld;
using testing::PacketNetwork;
using testing::Relay;
using testing::Tripwire;
using testing::Wires;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kNetworks = 5;  // at once
#else
constexpr int kNetworks = 14;
#endif

// Every connection of every rank goes through a relay.
class RelayedTest : public ::testing::TestWithParam<Wires> {
 protected:
  RelayedTest() {
    group_.options.segment_bytes = testing::kCallSegmentBytes;
    for (int rank = 0; rank < kCallWorld; ++rank)
      group_.options.members[rank].address = relay_.Open(group_.options.members[rank].address);
  }

  // Each call in a round of its own.
  void ExpectAllWork(const std::function<void()>& worsen) {
    for (const Call& call : testing::AllCalls()) {
      relay_.Pass();
      worsen();
      group_.options.algorithm = call.algorithm;
      group_.Run([&](Communicator& comm) {
        const absl::Status status = call.run(comm);
        EXPECT_TRUE(status.ok()) << call.name << ": " << status;
      });
    }
  }

  Group group_{kCallWorld, GetParam()};
  Relay relay_;
};

INSTANTIATE_TEST_SUITE_P(Wires, RelayedTest,
                         ::testing::Values(Wires::kShared, Wires::kTcp, Wires::kTls),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

TEST_P(RelayedTest, BytesMayComeInPiecesOfAnyLength) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  ExpectAllWork([&] { relay_.Chop(1 + random() % 61, microseconds(0)); });
}

// An operation takes several times as long as a peer may be silent.
TEST_P(RelayedTest, ASlowNetworkIsWaitedFor) {
  group_.options.operation_timeout = testing::kImpatience;
  group_.options.algorithm = Algorithm::kRing;
  relay_.Chop(200, milliseconds(20));
  const auto start = steady_clock::now();
  group_.Run([&](Communicator& comm) {
    std::vector<float> data(20'000, 1.0f);
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, data, data, "slow").ok()) << comm.status();
    EXPECT_EQ(data, std::vector<float>(data.size(), 4.0f));
  });
  if (GetParam() != Wires::kShared) {
    EXPECT_GT(steady_clock::now() - start, 2 * group_.options.operation_timeout);
  }
}

TEST_P(RelayedTest, ConnectionsThatBreakBeforeTheHandshakeAreMadeAnew) {
  ExpectAllWork([&] { relay_.DropNext(5); });
}

// As many ranks on each of some hosts, one after another, each with its listener there.
class Hosts {
 public:
  explicit Hosts(unsigned seed, int hosts = kCallWorld, int ranks_each = 1)
      : network(hosts, seed), world_(hosts * ranks_each), ranks_each_(ranks_each) {
    options.job = "test/packets";
    options.key = "a key that only the members know";
    options.transport = ranks_each == 1 ? TransportChoice::kTcp : TransportChoice::kAuto;
    options.segment_bytes = testing::kCallSegmentBytes;
    listeners_.resize(static_cast<size_t>(world_));
    for (int rank = 0; rank < world_; ++rank) {
      std::thread([&] {
        network.Enter(HostOf(rank));
        auto listener = tcp::Listener::Open(PacketNetwork::Address(HostOf(rank)) + ":0");
        RM_CHECK(listener.ok(), "cannot listen");
        listeners_[static_cast<size_t>(rank)] = *std::move(listener);
      }).join();
      options.members.push_back({listener(rank).address(), fmt::format("uid-{}", rank)});
    }
  }

  int HostOf(int rank) const { return rank / ranks_each_; }
  tcp::Listener& listener(int rank) { return *listeners_[static_cast<size_t>(rank)]; }

  // A round, in which `wire` is around rank `wired`.
  void Run(const std::function<void(Communicator&)>& body, int wired = -1,
           Tripwire* wire = nullptr) {
    ++options.round;
    testing::RunThreads(world_, [&](int rank) {
      network.Enter(HostOf(rank));
      const TimelineTrack track(rank == wired ? timeline_.get() : nullptr, "wired");
      CommunicatorOptions mine = options;
      mine.rank = rank;
      const auto comm = testing::OpenTripped(mine, listener(rank), rank == wired ? wire : nullptr);
      body(*comm);
    });
  }

  PacketNetwork network;
  CommunicatorOptions options;

 private:
  const int world_;
  const int ranks_each_;
  std::vector<std::unique_ptr<tcp::Listener>> listeners_;
  // Only to know the phase that a rank is in: nobody looks at the file.
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::unique_ptr<Timeline> timeline_ =
      Timeline::Open(folder_.path() / "timeline.json", 0, "wired", {.most_bytes = 1}).value();
};

class PacketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ringmaster::testing::SkipUnless(PacketNetwork::IsPossible(),
                                    "needs root and /dev/net/tun, to make hosts of namespaces");
  }

  const unsigned seed_ = std::random_device{}();
};

TEST_F(PacketTest, LostAndReorderedPacketsChangeNoNumber) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  Hosts hosts(seed_);
  hosts.network.SetWeather({.loss = 0.01, .late = 0.2, .by = milliseconds(3)});
  for (const Call& call : testing::AllCalls()) {
    hosts.options.algorithm = call.algorithm;
    hosts.Run([&](Communicator& comm) {
      const absl::Status status = call.run(comm);
      EXPECT_TRUE(status.ok()) << call.name << ": " << status;
    });
  }
  EXPECT_GT(hosts.network.lost(), 0U);
  EXPECT_GT(hosts.network.late(), 0U);
}

// In which phase each step is that `victim` makes in the call.
std::vector<std::string_view> PhasesOf(Hosts& hosts, const Call& call, int victim) {
  Tripwire wire;
  hosts.options.algorithm = call.algorithm;
  hosts.options.operation_timeout = testing::kPatience;
  hosts.Run(
      [&](Communicator& comm) {
        if (comm.rank() == victim) wire.armed = true;
        EXPECT_TRUE(call.run(comm).ok()) << call.name << ": " << comm.status();
      },
      victim, &wire);
  return wire.phases;
}

struct LinkCase {
  const Call* call;
  int victim;
  int at;  // the victim's step in the phase
  std::string phase;
};

// The victim's link goes down at that step of its, and comes back when all have failed.
void PlayLinkDown(Hosts& hosts, const LinkCase& c) {
  const Call& call = *c.call;
  hosts.options.algorithm = call.algorithm;
  hosts.options.operation_timeout = testing::kImpatience;
  Tripwire wire;
  wire.at = c.at;
  wire.phase = c.phase;
  const std::string place =
      fmt::format("{}, rank {} at step {} of {}", call.name, c.victim, c.at, c.phase);
  std::barrier everybody(kCallWorld);
  wire.trip = [&] { hosts.network.SetLink(c.victim, false); };
  hosts.Run(
      [&](Communicator& comm) {
        testing::Meet(comm, everybody);
        const bool is_victim = comm.rank() == c.victim;
        if (is_victim) wire.armed = true;
        absl::Status status = call.run(comm);
        if (is_victim) {
          wire.armed = false;
          if (wire.trip) wire.trip();  // it makes less steps now and then, as it need not wait
        }
        if (status.ok()) status = comm.Barrier("after");
        everybody.arrive_and_wait();
        if (is_victim) return;  // what it needs may have come before
        EXPECT_FALSE(status.ok()) << place;
        EXPECT_EQ(comm.suspect(), c.victim) << place << ": " << status;
        EXPECT_THAT(Message(status), AllOf(HasSubstr(fmt::format("rank {} (", c.victim)),
                                           AnyOf(HasSubstr("silent"), HasSubstr("lost"))))
            << place;
        EXPECT_TRUE(testing::IsNamedIn(Message(status), call, "after")) << place << ": " << status;
      },
      c.victim, &wire);
  hosts.network.SetLink(c.victim, true);
  EXPECT_EQ(wire.tripped_in, c.phase) << place;
}

// Runs `play(hosts, job)` for each job, several at a time, each on hosts of its own.
void PlayAll(unsigned seed, int at_once, size_t jobs,
             const std::function<void(Hosts&, size_t)>& play) {
  std::atomic<size_t> next = 0;
  testing::RunThreads(at_once, [&](int) {
    Hosts hosts(seed);
    for (size_t job = next++; job < jobs; job = next++) play(hosts, job);
  });
}

TEST_F(PacketTest, AHostWhoseLinkGoesDownIsNamedByAllOthersInEveryPhaseOfEveryAlgorithm) {
  const std::vector<Call> calls = testing::AllCalls();
  std::vector<std::vector<LinkCase>> by_call(calls.size());
  PlayAll(seed_, kNetworks, calls.size(), [&](Hosts& hosts, size_t job) {
    std::set<std::string> struck;
    for (int i = 0; i < kCallWorld; ++i) {
      const int victim = (static_cast<int>(job) + i) % kCallWorld;
      for (const auto& [phase, middle] :
           testing::MiddleOfEachPhase(PhasesOf(hosts, calls[job], victim))) {
        if (!struck.insert(phase).second) continue;
        by_call[job].push_back({&calls[job], victim, middle, phase});
      }
    }
  });
  std::vector<LinkCase> cases;
  for (const auto& some : by_call) cases.insert(cases.end(), some.begin(), some.end());
  // They mostly wait.
  PlayAll(seed_, 2 * kNetworks, cases.size(),
          [&](Hosts& hosts, size_t job) { PlayLinkDown(hosts, cases[job]); });
}

// They share memory, and go on to talk to one another. Whom a survivor waits for may be either.
TEST_F(PacketTest, AHostOfTwoRanksWhoseLinkGoesDownIsNamedByAllOthersWhateverTheAlgorithm) {
  constexpr int kLast = 3;  // step before the link goes down
  const auto algorithms = AlgorithmsOf(OperationKind::kAllreduce);
  testing::RunThreads(static_cast<int>(algorithms.size()), [&](int job) {
    const Algorithm algorithm = algorithms[static_cast<size_t>(job)];
    const std::string name = NameOf(algorithm);
    Hosts hosts(seed_, /*hosts=*/3, /*ranks_each=*/2);
    hosts.options.algorithm = algorithm;
    hosts.options.operation_timeout = testing::kImpatience;
    std::barrier everybody(6);
    hosts.Run([&](Communicator& comm) {
      testing::Meet(comm, everybody);
      ASSERT_TRUE(comm.Fit().ok()) << name << ": " << comm.status();
      ASSERT_EQ(comm.selector().nodes().nodes(), 3);
      std::vector<float> data(20'000, 1.0f);
      absl::Status status;
      for (int step = 0; status.ok(); ++step) {
        if (step == kLast && comm.rank() == 2) hosts.network.SetLink(1, false);
        status = comm.Allreduce(Reduction::kMax, data, data, "step");
      }
      everybody.arrive_and_wait();
      if (hosts.HostOf(comm.rank()) == 1) return;
      EXPECT_EQ(hosts.HostOf(comm.suspect()), 1) << name << ": " << status;
      EXPECT_THAT(Message(status), AllOf(HasSubstr(fmt::format("rank {} (", comm.suspect())),
                                         AnyOf(HasSubstr("silent"), HasSubstr("lost"))))
          << name;
    });
  });
}

TEST_F(PacketTest, AfterAHostIsGoneTheOthersGoOnWithoutIt) {
  Hosts hosts(seed_);
  hosts.options.operation_timeout = testing::kImpatience;
  std::barrier everybody(kCallWorld);
  hosts.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    if (comm.rank() == 2) hosts.network.SetLink(2, false);
    absl::Status status;
    while (status.ok()) status = comm.Barrier("gone");
    everybody.arrive_and_wait();
    if (comm.rank() != 2) {
      EXPECT_EQ(comm.suspect(), 2) << status;
    }
  });
  hosts.options.members.erase(hosts.options.members.begin() + 2);
  hosts.options.operation_timeout = testing::kPatience;
  ++hosts.options.round;
  testing::RunThreads(kCallWorld - 1, [&](int rank) {
    const int host = rank < 2 ? rank : 3;
    hosts.network.Enter(host);
    CommunicatorOptions mine = hosts.options;
    mine.rank = rank;
    const auto comm = Communicator::Create(mine, hosts.listener(host));
    ASSERT_TRUE(comm.ok()) << comm.status();
    EXPECT_TRUE((*comm)->Barrier("without it").ok()) << (*comm)->status();
  });
}

// A network of its own, which the calling thread and those that it starts are in from here on: one
// loopback, on which the kernel drops one packet of TCP in a hundred. False: that is not possible.
bool EnterLossyLoopback() {
  return unshare(CLONE_NEWNET) == 0 &&
         std::system(
             "exec 2> /dev/null; ip link set lo up && iptables -A INPUT -p tcp "
             "-m statistic --mode random --probability 0.01 -j DROP") == 0;
}

class FirewallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bool is_possible = false;
    std::thread([&] { is_possible = EnterLossyLoopback(); }).join();
    ringmaster::testing::SkipUnless(is_possible,
                                    "needs root, ip, and iptables with the statistic match");
  }
};

TEST_F(FirewallTest, PacketsThatIptablesDropsChangeNoNumber) {
  std::thread([] {
    ASSERT_TRUE(EnterLossyLoopback());
    Group group(kCallWorld, Wires::kTcp);
    group.options.segment_bytes = testing::kCallSegmentBytes;
    for (const Call& call : testing::AllCalls()) {
      group.options.algorithm = call.algorithm;
      group.Run([&](Communicator& comm) {
        const absl::Status status = call.run(comm);
        EXPECT_TRUE(status.ok()) << call.name << ": " << status;
      });
    }
    EXPECT_EQ(std::system("iptables -nvxL INPUT | grep -Eq '^ *[1-9][0-9]* .*DROP'"), 0)
        << "no packet was dropped";
  }).join();
}

}  // namespace
}  // namespace ringmaster::collectives

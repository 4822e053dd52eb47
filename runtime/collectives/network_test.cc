// Bad networks: every operation while bytes come late, in small pieces and over connections that
// break in the handshake, and over packets that are lost and overtake one another.
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <poll.h>
#include <random>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>

#include "common/check.h"
#include "common/file.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"

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
using testing::Relay;
using testing::Wires;

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

// Hosts in network namespaces of their own, whose packets this process carries from one to the
// other, and loses, delays and reorders. Needs root.
class PacketNetwork {
 public:
  struct Weather {
    double loss = 0;
    double late = 0;  // packets that wait, so that those behind them overtake
    milliseconds by{0};
  };

  static bool IsPossible() { return geteuid() == 0 && access("/dev/net/tun", R_OK | W_OK) == 0; }

  PacketNetwork(int hosts, unsigned seed) : random_(seed) {
    for (int host = 0; host < hosts; ++host) {
      std::thread([&] {
        RM_CHECK(unshare(CLONE_NEWNET) == 0, "no network namespace");
        spaces_.emplace_back(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        tunnels_.emplace_back(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
        ifreq request{};
        request.ifr_flags = IFF_TUN | IFF_NO_PI;
        std::snprintf(request.ifr_name, sizeof(request.ifr_name), "tun0");
        RM_CHECK(ioctl(tunnels_.back().get(), TUNSETIFF, &request) == 0, "no tunnel");
        Configure(fmt::format("ip address add {}/24 dev tun0", Address(host)));
        Configure("ip link set tun0 up");
        Configure("ip link set lo up");
      }).join();
    }
    carrier_ = std::thread([this] { Carry(); });
  }

  ~PacketNetwork() {
    stopping_ = true;
    carrier_.join();
  }

  static std::string Address(int host) { return fmt::format("10.83.0.{}", host + 1); }

  void SetWeather(const Weather& weather) {
    const std::lock_guard lock(mutex_);
    weather_ = weather;
  }

  // The calling thread, and those that it starts, belong to the host from here on.
  void Enter(int host) {
    RM_CHECK(setns(spaces_[static_cast<size_t>(host)].get(), CLONE_NEWNET) == 0, "cannot enter");
  }
  void TakeLinkDown(int host) {
    std::thread([&] {
      Enter(host);
      Configure("ip link set tun0 down");
    }).join();
  }

 private:
  struct Packet {
    steady_clock::time_point due;
    size_t host;
    std::vector<char> bytes;
  };

  static void Configure(const std::string& command) {
    RM_CHECK(std::system(command.c_str()) == 0, command.c_str());
  }

  void Carry() {
    std::vector<pollfd> polled;
    for (const UniqueFd& tunnel : tunnels_) polled.push_back({tunnel.get(), POLLIN, 0});
    while (!stopping_) {
      poll(polled.data(), polled.size(), late_.empty() ? 20 : 1);
      for (const UniqueFd& tunnel : tunnels_) {
        std::vector<char> bytes(4096);
        for (ssize_t got; (got = read(tunnel.get(), bytes.data(), bytes.size())) > 0;)
          Route({bytes.begin(), bytes.begin() + got});
      }
      const auto now = steady_clock::now();
      for (size_t i = 0; i < late_.size();) {
        if (late_[i].due > now) {
          ++i;
          continue;
        }
        Put(late_[i]);
        late_.erase(late_.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  }

  // By the last number of its destination, in an IPv4 packet.
  void Route(std::vector<char> bytes) {
    constexpr size_t kLastOfDestination = 19;
    if (bytes.size() <= kLastOfDestination || (bytes[0] >> 4) != 4) return;
    const size_t host = static_cast<unsigned char>(bytes[kLastOfDestination]) - size_t{1};
    if (host >= tunnels_.size()) return;
    const std::lock_guard lock(mutex_);
    std::uniform_real_distribution<double> chance;
    if (chance(random_) < weather_.loss) return;
    const bool late = chance(random_) < weather_.late;
    Packet packet{steady_clock::now() + (late ? weather_.by : milliseconds(0)), host,
                  std::move(bytes)};
    if (late) {
      late_.push_back(std::move(packet));
    } else {
      Put(packet);
    }
  }

  // Where the link is down it is lost.
  void Put(const Packet& packet) {
    [[maybe_unused]] const ssize_t written =
        write(tunnels_[packet.host].get(), packet.bytes.data(), packet.bytes.size());
  }

  std::vector<UniqueFd> spaces_;
  std::vector<UniqueFd> tunnels_;
  std::mutex mutex_;
  Weather weather_;
  std::mt19937 random_;
  std::deque<Packet> late_;  // the carrier's own
  std::atomic<bool> stopping_ = false;
  std::thread carrier_;
};

// A rank on each of four hosts, each with its listener there.
class PacketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PacketNetwork::IsPossible()) {
      constexpr const char* kNeeds = "needs root and /dev/net/tun, to make hosts of namespaces";
      // CI leaves no test out.
      if (const char* ci = std::getenv("CI"); ci != nullptr && ci == std::string("true"))
        FAIL() << kNeeds;
      GTEST_SKIP() << kNeeds;
    }
    seed_ = std::random_device{}();
    network_ = std::make_unique<PacketNetwork>(kCallWorld, seed_);
    options_.job = "test/packets";
    options_.key = "a key that only the members know";
    options_.transport = TransportChoice::kTcp;
    options_.segment_bytes = testing::kCallSegmentBytes;
    listeners_.resize(kCallWorld);
    for (int rank = 0; rank < kCallWorld; ++rank) {
      std::thread([&] {
        network_->Enter(rank);
        auto listener = tcp::Listener::Open(PacketNetwork::Address(rank) + ":0");
        RM_CHECK(listener.ok(), "cannot listen");
        listeners_[static_cast<size_t>(rank)] = *std::move(listener);
      }).join();
      options_.members.push_back(
          {listeners_[static_cast<size_t>(rank)]->address(), fmt::format("uid-{}", rank)});
    }
  }

  void Run(const std::function<void(Communicator&)>& body) {
    ++options_.round;
    testing::RunThreads(kCallWorld, [&](int rank) {
      network_->Enter(rank);
      CommunicatorOptions mine = options_;
      mine.rank = rank;
      const auto comm = Communicator::Create(mine, *listeners_[static_cast<size_t>(rank)]);
      ASSERT_TRUE(comm.ok()) << comm.status();
      body(**comm);
    });
  }

  unsigned seed_ = 0;
  std::unique_ptr<PacketNetwork> network_;
  CommunicatorOptions options_;
  std::vector<std::unique_ptr<tcp::Listener>> listeners_;
};

TEST_F(PacketTest, LostAndReorderedPacketsChangeNoNumber) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  network_->SetWeather({.loss = 0.01, .late = 0.2, .by = milliseconds(3)});
  for (const Call& call : testing::AllCalls()) {
    options_.algorithm = call.algorithm;
    Run([&](Communicator& comm) {
      const absl::Status status = call.run(comm);
      EXPECT_TRUE(status.ok()) << call.name << ": " << status;
    });
  }
}

TEST_F(PacketTest, AHostWhoseLinkGoesDownIsNamedByAllOthers) {
  options_.operation_timeout = testing::kImpatience;
  options_.connect_timeout = testing::kImpatience;
  options_.algorithm = Algorithm::kRing;
  std::barrier everybody(kCallWorld);
  Run([&](Communicator& comm) {
    const std::vector<size_t> ones(kCallWorld, 1);
    std::vector<float> all(kCallWorld);
    EXPECT_TRUE(comm.AllToAll(std::vector<float>(kCallWorld), ones, all, ones, "meet").ok());
    everybody.arrive_and_wait();
    if (comm.rank() == 2) network_->TakeLinkDown(2);
    const auto start = steady_clock::now();
    std::vector<float> data(100'000, 1.0f);
    absl::Status status;
    while (status.ok()) status = comm.Allreduce(Reduction::kSum, data, data, "gradient");
    EXPECT_LT(steady_clock::now() - start, options_.operation_timeout + std::chrono::seconds(8));
    if (comm.rank() != 2) {
      EXPECT_EQ(comm.suspect(), 2) << status;
      EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 2 ("), HasSubstr("\"gradient\""),
                                         AnyOf(HasSubstr("silent"), HasSubstr("lost"))));
    }
    everybody.arrive_and_wait();
  });
  // The next round, without that host.
  options_.members.erase(options_.members.begin() + 2);
  options_.operation_timeout = testing::kPatience;
  options_.connect_timeout = testing::kPatience;
  ++options_.round;
  testing::RunThreads(kCallWorld - 1, [&](int rank) {
    const int host = rank < 2 ? rank : 3;
    network_->Enter(host);
    CommunicatorOptions mine = options_;
    mine.rank = rank;
    const auto comm = Communicator::Create(mine, *listeners_[static_cast<size_t>(host)]);
    ASSERT_TRUE(comm.ok()) << comm.status();
    EXPECT_TRUE((*comm)->Barrier("without it").ok()) << (*comm)->status();
  });
}

}  // namespace
}  // namespace ringmaster::collectives

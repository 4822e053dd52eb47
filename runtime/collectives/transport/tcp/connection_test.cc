// What a connection between two ranks is: from where, to where, and with which options.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/tcp/listener.h"
#include "runtime/collectives/transport/tcp/socket.h"
#include "tests/support/skip.h"

namespace ringmaster::collectives::tcp {
namespace {

using collectives::testing::Group;
using collectives::testing::RunThreads;

int OptionOf(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  EXPECT_EQ(getsockopt(fd, level, option, &value, &length), 0);
  return value;
}

// Both ends of the connections to a listener, as this process has them.
struct Ends {
  std::vector<int> dialing;
  std::vector<int> accepting;
};

SocketAddress PeerAddress(int fd) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    address.length = 0;
  return address;
}

Ends ConnectionsTo(const std::string& listener) {
  Ends ends;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    const SocketAddress peer = PeerAddress(fd);
    if (peer.length == 0) continue;
    if (FormatAddress(peer) == listener) ends.dialing.push_back(fd);
    if (FormatAddress(*LocalAddress(fd)) == listener) ends.accepting.push_back(fd);
  }
  return ends;
}

// Rank 0, which has dialed rank 1.
class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() : group_(2) {
    ++group_.options.round;
    for (const int rank : {0, 1}) communicators_.push_back(group_.Open(rank));
    RunThreads(2, [&](int rank) {
      Communicator& comm = *communicators_[static_cast<size_t>(rank)];
      EXPECT_TRUE(comm.Barrier("meet").ok()) << comm.status();
    });
    ends_ = ConnectionsTo(group_.listener(1).address());
  }

  Group group_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  Ends ends_;
};

TEST_F(ConnectionTest, IsTunedAtBothEnds) {
  ASSERT_EQ(ends_.dialing.size(), 1u);
  ASSERT_EQ(ends_.accepting.size(), 1u);
  for (const int fd : {ends_.dialing[0], ends_.accepting[0]}) {
    EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(OptionOf(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    const int idle = OptionOf(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    const int interval = OptionOf(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    EXPECT_EQ(std::chrono::seconds(idle + interval * OptionOf(fd, IPPROTO_TCP, TCP_KEEPCNT)),
              group_.options.operation_timeout);
    EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  }
}

TEST_F(ConnectionTest, ComesFromTheAddressAtWhichItsRankListens) {
  ASSERT_EQ(ends_.accepting.size(), 1u);
  EXPECT_EQ(FormatHost(PeerAddress(ends_.accepting[0])),
            FormatHost(*ParseAddress(group_.listener(0).address())));
}

bool HasIpv6Loopback() {
  std::ifstream addresses("/proc/net/if_inet6");
  const std::string all((std::istreambuf_iterator<char>(addresses)), {});
  return all.find("00000000000000000000000000000001 ") != std::string::npos;
}

class Ipv6Test : public ::testing::Test {
 protected:
  void SetUp() override {
    ringmaster::testing::SkipUnless(HasIpv6Loopback(), "this machine has no ::1");
  }
};

TEST_F(Ipv6Test, AGroupWorksOverIt) {
  std::vector<std::unique_ptr<Listener>> listeners;
  CommunicatorOptions options;
  options.job = "test/ipv6";
  options.round = 1;
  options.key = "a key that only the members know";
  options.transport = TransportChoice::kTcp;
  for (int rank = 0; rank < 3; ++rank) {
    auto listener = Listener::Open("[::1]:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    options.members.push_back({(*listener)->address(), "uid-" + std::to_string(rank)});
    listeners.push_back(std::move(*listener));
  }
  RunThreads(3, [&](int rank) {
    CommunicatorOptions mine = options;
    mine.rank = rank;
    const auto comm = Communicator::Create(mine, *listeners[static_cast<size_t>(rank)]);
    ASSERT_TRUE(comm.ok()) << comm.status();
    std::vector<float> data(100'000, 1.0f);
    EXPECT_TRUE((*comm)->Allreduce(Reduction::kSum, data, data, "sum").ok()) << (*comm)->status();
    EXPECT_EQ(data, std::vector<float>(data.size(), 3.0f));
  });
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

#include "runtime/collectives/transport/tcp/congestion.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/file.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/tcp/socket.h"

namespace ringmaster::collectives::tcp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

UniqueFd NewSocket(int family = AF_INET) {
  return UniqueFd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool Use(int fd, std::string_view name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

// A connection from a host to itself, and what listens for it; nothing where the host has no such
// address.
struct Loop {
  explicit Loop(const char* at) {
    absl::StatusOr<UniqueFd> listening = ListenAt(*ParseAddress(at));
    if (!listening.ok()) return;
    listener = *std::move(listening);
    const SocketAddress target = *LocalAddress(listener.get());
    end = NewSocket(target.storage.ss_family);
    EXPECT_EQ(connect(end.get(), target.get(), target.length), 0) << at;
  }
  UniqueFd listener, end;
};

TEST(CongestionTest, AConnectionWithinAHostIsNotPaced) {
  for (const char* at : {"127.0.0.1:0", "[::1]:0"}) {
    const Loop loop(at);
    if (!loop.end.valid() && at[0] == '[') continue;  // a host without IPv6
    ChooseCongestion(loop.end.get(), kAutoCongestion);
    EXPECT_EQ(CongestionOf(loop.end.get()), "reno") << at;
  }
}

TEST(CongestionTest, AConnectionWithinAHostKeepsTheMachinesChoiceWhereItIsToldSo) {
  const Loop loop("127.0.0.1:0");
  const std::string before = CongestionOf(loop.end.get());
  ASSERT_NE(before, "");
  ChooseCongestion(loop.end.get(), kMachineCongestion);
  EXPECT_EQ(CongestionOf(loop.end.get()), before);
}

TEST(CongestionTest, BetweenHostsBbrIsReplacedAndAnyOtherChoiceKept) {
  const UniqueFd fd = NewSocket();  // of which no end is known to be on this host
  ASSERT_TRUE(Use(fd.get(), "reno"));
  ChooseCongestion(fd.get(), kAutoCongestion);
  EXPECT_EQ(CongestionOf(fd.get()), "reno");
  if (!Use(fd.get(), "bbr")) GTEST_SKIP() << "this kernel has no BBR, or keeps it for root";
  ChooseCongestion(fd.get(), kMachineCongestion);
  EXPECT_EQ(CongestionOf(fd.get()), "bbr");
  ChooseCongestion(fd.get(), kAutoCongestion);
  EXPECT_THAT(CongestionOf(fd.get()), ::testing::AnyOf("cubic", "reno"));
}

TEST(CongestionTest, ANameThatTheKernelKnowsIsUsedEverywhere) {
  ASSERT_TRUE(CheckCongestion("reno").ok());
  const UniqueFd fd = NewSocket();
  ChooseCongestion(fd.get(), "reno");
  EXPECT_EQ(CongestionOf(fd.get()), "reno");
}

TEST(CongestionTest, ANameThatTheKernelDoesNotKnowIsRefusedWithThoseThatItAllows) {
  for (const char* name : {"hearsay", "a-name-that-is-longer-than-any-of-the-kernels", ""}) {
    const absl::Status status = CheckCongestion(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(name), HasSubstr("reno")));
  }
  EXPECT_TRUE(CheckCongestion(kAutoCongestion).ok());
  EXPECT_TRUE(CheckCongestion(kMachineCongestion).ok());
}

constexpr int kMostDescriptors = 1024;

// What all connections of this process use, both ends.
std::set<std::string> InUse() {
  std::set<std::string> names;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        peer.ss_family == AF_INET)
      names.insert(CongestionOf(fd));
  }
  return names;
}

TEST(CongestionTest, BothEndsOfARoundsConnectionsUseWhatItsOptionsSay) {
  const std::string machines = CongestionOf(NewSocket().get());
  for (const auto& [choice, used] :
       {std::pair(kAutoCongestion, std::string("reno")), std::pair(kMachineCongestion, machines)}) {
    collectives::testing::Group group(2, collectives::testing::Wires::kTcp);
    group.options.congestion_control = choice;
    group.Run([&, used = used](Communicator& comm) {
      ASSERT_TRUE(comm.Barrier("connected").ok());
      if (comm.rank() == 0) {
        EXPECT_THAT(InUse(), ::testing::ElementsAre(used));
      }
      ASSERT_TRUE(comm.Barrier("seen").ok());
    });
  }
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

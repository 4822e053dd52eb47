#include "common/peer_address.h"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "common/status.h"

namespace ringmaster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;

// A pod of a cluster with two families, a fast network by Multus, and one whose cable is out.
const std::vector<NetworkInterface>& Pod() {
  static const auto* const interfaces = new std::vector<NetworkInterface>{
      {"lo", true, {"127.0.0.1", "::1"}},
      {"eth0", true, {"10.1.0.100", "10.1.0.5", "fd00:1::5"}},
      {"net1", true, {"10.2.3.5", "10.2.3.6", "fd00:2::5"}},
      {"net2", true, {}},
      {"net3", false, {"10.3.0.5"}},
  };
  return *interfaces;
}

constexpr char kPodIp[] = "10.1.0.5";

std::string Choose(const std::string& wanted, const std::string& pod_ip = kPodIp) {
  const auto address = ChooseAddress(wanted, pod_ip, Pod());
  return address.ok() ? *address : Message(address.status());
}

TEST(PeerAddressTest, IsOnTheInterfaceThatIsNamed) {
  EXPECT_EQ(Choose("net1"), "10.2.3.5");
  EXPECT_EQ(Choose("lo"), "127.0.0.1");
}

TEST(PeerAddressTest, IsInTheSubnetThatIsNamed) {
  EXPECT_EQ(Choose("10.2.0.0/16"), "10.2.3.5");
  EXPECT_EQ(Choose("10.2.3.6/31"), "10.2.3.6");
  EXPECT_EQ(Choose("10.2.3.6/32"), "10.2.3.6");
  EXPECT_EQ(Choose("10.2.200.1/16"), "10.2.3.5") << "bits behind the prefix do not matter";
  EXPECT_EQ(Choose("127.0.0.0/8"), "127.0.0.1");
  EXPECT_EQ(Choose("fd00:2::/64"), "fd00:2::5");
  EXPECT_EQ(Choose("fd00:3::/31"), "fd00:2::5");
  EXPECT_EQ(Choose("::1/128"), "::1");
}

TEST(PeerAddressTest, EndsASubnetAtItsLastBit) {
  EXPECT_THAT(Choose("10.2.3.4/32"), HasSubstr("no address is in 10.2.3.4/32"));
  EXPECT_THAT(Choose("10.2.4.0/22"), HasSubstr("no address is in"));
  EXPECT_THAT(Choose("fd00:3::/32"), HasSubstr("no address is in"));
}

TEST(PeerAddressTest, KeepsIpv4AndIpv6Apart) {
  EXPECT_EQ(Choose("0.0.0.0/0", "fd00:1::5"), "127.0.0.1");
  EXPECT_EQ(Choose("::/0"), "::1");
}

TEST(PeerAddressTest, IsOfTheFirstNetworkInTheListThatTheWorkerHas) {
  EXPECT_EQ(Choose("ens5f0,net1,lo"), "10.2.3.5");
  EXPECT_EQ(Choose("net3,10.9.0.0/16,fd00:2::/64"), "fd00:2::5");
}

TEST(PeerAddressTest, IsThePodsOwnWhereThatIsAmongSeveral) {
  EXPECT_EQ(Choose("eth0"), kPodIp);
  EXPECT_EQ(Choose("10.1.0.0/16"), kPodIp);
  EXPECT_EQ(Choose("0.0.0.0/0"), kPodIp);
}

TEST(PeerAddressTest, IsOfThePodsFamilyWhereThereIsOneOfIt) {
  EXPECT_EQ(Choose("net1", "fd00:1::5"), "fd00:2::5");
  EXPECT_EQ(Choose("net3,net1", "fd00:1::7"), "fd00:2::5");
}

TEST(PeerAddressTest, SaysWhyEachNetworkHasNoneAndWhichAddressesThereAre) {
  EXPECT_EQ(Choose("ib0,net2,net3,10.9.0.0/16"),
            "there is no interface ib0, interface net2 has no address, interface net3 is down, no "
            "address is in 10.9.0.0/16; this worker has lo 127.0.0.1, lo ::1, eth0 10.1.0.100, "
            "eth0 10.1.0.5, eth0 fd00:1::5, net1 10.2.3.5, net1 10.2.3.6, net1 fd00:2::5");
  EXPECT_EQ(ChooseAddress("ib0", kPodIp, Pod()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(ChooseAddress("ib0", kPodIp, {}).status()),
              EndsWith("this worker has no address on an interface that is up"));
}

TEST(PeerAddressTest, ListsNoMoreAddressesThanOneReads) {
  NetworkInterface crowded{"eth0", true, {}};
  for (int i = 0; i < 200; ++i) crowded.addresses.push_back("10.1.0." + std::to_string(i));
  EXPECT_THAT(Message(ChooseAddress("ib0", kPodIp, {crowded}).status()),
              EndsWith("eth0 10.1.0.31 and 168 more"));
}

TEST(PeerAddressTest, RefusesWhatIsNoListOfNetworks) {
  for (const char* wanted :
       {"net1,", ",net1", "net1, net2", "10.2.0.0/33", "10.2.0.0/-1", "10.2.0.0/", "10.2.0.0/16x",
        "10.2/16", "fd00:2::/129", "net1/24", "fd00:2::5", "sixteen-letters!", "net1,10.2.0.0/x"}) {
    const auto address = ChooseAddress(wanted, kPodIp, Pod());
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << wanted;
    EXPECT_THAT(Message(address.status()), HasSubstr("for example net1, 10.2.0.0/16")) << wanted;
  }
}

// With the interfaces of this machine, of which every one has a loopback.
class PeerAddressHereTest : public ::testing::Test {
 protected:
  ~PeerAddressHereTest() override { ::unsetenv(contract::kEnvPeerInterface); }
  static absl::StatusOr<std::string> With(const char* wanted) {
    ::setenv(contract::kEnvPeerInterface, wanted, 1);
    return PeerAddress("127.77.0.2");
  }
};

TEST_F(PeerAddressHereTest, IsThePodsOwnWhereNothingIsChosen) {
  EXPECT_EQ(PeerAddress("127.77.0.2").value(), "127.77.0.2");
  EXPECT_EQ(With("").value(), "127.77.0.2");
}

TEST_F(PeerAddressHereTest, IsOfTheLoopbackWhereThatIsChosen) {
  EXPECT_EQ(With("lo").value(), "127.0.0.1");
  EXPECT_EQ(With("127.0.0.0/8").value(), "127.0.0.1");
}

TEST_F(PeerAddressHereTest, NamesTheVariableWhereItFails) {
  const absl::Status status = With("no-such-net").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("environment variable RINGMASTER_PEER_INTERFACE: there is no "
                              "interface no-such-net; this worker has "),
                    HasSubstr("lo 127.0.0.1")));
  EXPECT_THAT(Message(With("10.0.0.0/99").status()), HasSubstr("RINGMASTER_PEER_INTERFACE: '10."));
}

TEST_F(PeerAddressHereTest, EveryInterfaceIsListedOnceWithAllOfItsAddresses) {
  const std::vector<NetworkInterface> interfaces = ReadNetworkInterfaces().value();
  int loopbacks = 0;
  for (const NetworkInterface& one : interfaces) loopbacks += one.name == "lo" ? 1 : 0;
  EXPECT_EQ(loopbacks, 1);
  EXPECT_THAT(
      interfaces,
      Contains(AllOf(Field(&NetworkInterface::name, "lo"), Field(&NetworkInterface::up, true),
                     Field(&NetworkInterface::addresses, Contains("127.0.0.1")))));
}

}  // namespace
}  // namespace ringmaster

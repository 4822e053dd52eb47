#include "operator/node/loopback.h"

#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmaster::node {
namespace {

class LoopbackTest : public ::testing::Test {
 protected:
  const std::string name_ = "ringmaster-loopback-test-" + std::to_string(::getpid());
};

TEST_F(LoopbackTest, TwoRunsHoldDifferentSubnets) {
  const auto first = LoopbackSubnet::Acquire(name_);
  const auto second = LoopbackSubnet::Acquire(name_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->host(), second->host());
}

TEST_F(LoopbackTest, SubnetIsFreeAgainWhenItsHolderIsGone) {
  std::string host;
  {
    const auto first = LoopbackSubnet::Acquire(name_);
    ASSERT_TRUE(first.ok());
    host = first->host();
  }
  EXPECT_EQ(LoopbackSubnet::Acquire(name_)->host(), host);
}

TEST_F(LoopbackTest, ReleasedAddressIsNotTheNextOneTaken) {
  auto subnet = LoopbackSubnet::Acquire(name_);
  ASSERT_TRUE(subnet.ok());
  const std::string first = subnet->Take().value();
  subnet->Release(first);
  EXPECT_NE(subnet->Take().value(), first);
}

TEST_F(LoopbackTest, ExhaustedSubnetSaysSoAndServesAgainAfterARelease) {
  auto subnet = LoopbackSubnet::Acquire(name_);
  ASSERT_TRUE(subnet.ok());
  std::string last;
  for (int i = 2; i <= 254; ++i) last = subnet->Take().value();
  EXPECT_EQ(subnet->Take().status().code(), absl::StatusCode::kResourceExhausted);
  subnet->Release(last);
  EXPECT_EQ(subnet->Take().value(), last);
}

}  // namespace
}  // namespace ringmaster::node

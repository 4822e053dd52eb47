#include "operator/cluster/rendezvous_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base64.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::cluster {
namespace {

using kube::Json;
using kube::testing::Verb;
using ::testing::HasSubstr;

const kube::ObjectKey kKey{"system", "operator-rendezvous"};

class RendezvousSecretTest : public ::testing::Test {
 protected:
  std::string ErrorOfLoad() {
    return std::string(LoadOrCreateRendezvousSecret(*store_, kKey, clock_).status().message());
  }

  FakeClock clock_;
  std::unique_ptr<kube::memory::MemoryStore> store_ = *kube::memory::MemoryStore::Open({});
};

TEST_F(RendezvousSecretTest, EveryOperatorGetsTheSame) {
  const auto first = LoadOrCreateRendezvousSecret(*store_, kKey, clock_);
  const auto second = LoadOrCreateRendezvousSecret(*store_, kKey, clock_);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->round_secret.size(), 32u);
  EXPECT_EQ(first->round_secret, second->round_secret);
  EXPECT_EQ(first->certificate.key_pem, second->certificate.key_pem);
  EXPECT_EQ(first->ca_pem, first->certificate.certificate_pem);
}

TEST_F(RendezvousSecretTest, WhoLosesTheRaceTakesTheWinners) {
  kube::testing::FaultClient client(*store_);
  absl::StatusOr<RendezvousSecret> winner = absl::UnknownError("");
  client.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb == Verb::kGet && !winner.ok())
      winner = LoadOrCreateRendezvousSecret(*store_, kKey, clock_);
  });
  const auto loser = LoadOrCreateRendezvousSecret(client, kKey, clock_);
  ASSERT_TRUE(loser.ok()) << loser.status();
  EXPECT_EQ(loser->round_secret, winner->round_secret);
}

TEST_F(RendezvousSecretTest, TrustsTheAuthorityThatSignedWhereOneIsNamed) {
  ASSERT_TRUE(LoadOrCreateRendezvousSecret(*store_, kKey, clock_).ok());
  ASSERT_TRUE(
      store_->Patch(kube::kSecret, kKey, {{"data", {{"ca.crt", EncodeBase64("authority")}}}}).ok());
  EXPECT_EQ(LoadOrCreateRendezvousSecret(*store_, kKey, clock_)->ca_pem, "authority");
}

TEST_F(RendezvousSecretTest, NamesWhatCannotBeUsed) {
  ASSERT_TRUE(LoadOrCreateRendezvousSecret(*store_, kKey, clock_).ok());
  clock_.Advance(std::chrono::hours(24 * 3651));
  EXPECT_THAT(ErrorOfLoad(), HasSubstr("system/operator-rendezvous: its certificate has expired"));
  ASSERT_TRUE(store_->Patch(kube::kSecret, kKey, {{"data", {{"tls.key", nullptr}}}}).ok());
  EXPECT_THAT(ErrorOfLoad(), HasSubstr("no tls.key"));
}

TEST_F(RendezvousSecretTest, PassesTheClientsErrorsOn) {
  kube::testing::FaultClient client(*store_);
  client.FailNext({}, absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(LoadOrCreateRendezvousSecret(client, kKey, clock_).status()));
}

}  // namespace
}  // namespace ringmaster::cluster

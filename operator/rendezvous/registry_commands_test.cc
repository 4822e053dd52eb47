// What goes down to the workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/rendezvous/testing/registry_fixture.h"

namespace ringmaster::rendezvous {
namespace {

using ::testing::ElementsAre;
using testing::kJob;
using testing::Line;
using testing::MakeHello;
using testing::RegistryTest;

TEST_F(RegistryTest, AnnouncesARoundToItsMembersOnly) {
  const Line a = Join("u0");
  const Line b = Join("u1");
  const Line other = Join("u2");
  registry_.Announce(kJob, Round(1, {"u1", "u0"}));
  EXPECT_THAT(a.down->Story(), ElementsAre("accepted", "round 1"));
  EXPECT_THAT(b.down->Story(), ElementsAre("accepted", "round 1"));
  EXPECT_THAT(other.down->Story(), ElementsAre("accepted"));
  const v1::Round& round = a.down->messages[1].command().round();
  EXPECT_EQ(round.rank(), 1);
  EXPECT_EQ(round.members_size(), 2);
  EXPECT_EQ(round.shards(), 4);
  EXPECT_EQ(round.key().size(), 32u);
  EXPECT_EQ(round.key(), b.down->messages[1].command().round().key());
}

TEST_F(RegistryTest, AnnouncesARoundOnceHoweverOftenItIsAsked) {
  const Line line = Join("u0");
  registry_.Announce(kJob, Round(1, {"u0"}));
  registry_.Announce(kJob, Round(1, {"u0"}));
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "round 1"));
}

TEST_F(RegistryTest, AnnouncesRoundsInOrderAndNeverAnOlderOne) {
  const Line line = Join("u0");
  registry_.Announce(kJob, Round(1, {"u0"}));
  registry_.Announce(kJob, Round(2, {"u0"}));
  registry_.Announce(kJob, Round(1, {"u0"}));
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "round 1", "round 2"));
}

TEST_F(RegistryTest, TellsTheRoundAgainToAMemberThatDialsAgain) {
  registry_.Closed(Join("u0").id);
  registry_.Announce(kJob, Round(3, {"u0"}));
  const Line again = Join("u0", 3);
  EXPECT_THAT(again.down->Story(), ElementsAre("accepted", "round 3"));
  EXPECT_EQ(View("u0").round, 3);
}

TEST_F(RegistryTest, GivesARoundTheSameKeyAfterARestart) {
  const Line before = Join("u0");
  registry_.Announce(kJob, Round(1, {"u0"}));
  Registry restarted({Timing{}, "secret"}, clock_, verifier_, [](const kube::ObjectKey&) {});
  restarted.Announce(kJob, Round(1, {"u0"}));
  Line after;
  after.id = restarted.Opened(after.down, "10.0.0.9");
  v1::FromWorker hello;
  *hello.mutable_hello() = MakeHello("pod-u0", "u0", 1);
  restarted.Received(after.id, hello);
  EXPECT_EQ(before.down->messages[1].command().round().key(),
            after.down->messages[1].command().round().key());
}

TEST_F(RegistryTest, SendsADrainAndEachWishForACheckpointOnceOnAStream) {
  const reconcile::CheckpointNowCommand first{.wanted_since = clock_.Now()};
  const reconcile::CheckpointNowCommand next{.wanted_since = clock_.Now() + Duration(1)};
  const Line line = Join("u0");
  for (int i = 0; i < 2; ++i) {
    registry_.Send(kJob, "u0", reconcile::DrainCommand{"suspended"});
    registry_.Send(kJob, "u0", first);
  }
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "drain", "checkpoint"));
  registry_.Send(kJob, "u0", next);
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "drain", "checkpoint", "checkpoint"));
  registry_.Closed(line.id);
  const Line again = Join("u0");
  registry_.Send(kJob, "u0", next);
  EXPECT_THAT(again.down->Story(), ElementsAre("accepted", "checkpoint"));
}

}  // namespace
}  // namespace ringmaster::rendezvous

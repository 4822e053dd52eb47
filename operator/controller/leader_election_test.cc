#include "operator/controller/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::controller {
namespace {

using kube::Json;
using kube::testing::FaultClient;
using kube::testing::Moment;
using kube::testing::Verb;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const kube::ObjectKey kKey{"ringmaster-system", "ringmaster-operator"};

// A process that wants to lead: its own client, which a test may cut off, and its own clock.
struct Candidate {
  Candidate(const std::string& name, kube::Client& store, Time clock_starts)
      : clock(clock_starts),
        client(store),
        elector({.lease = kKey, .identity = name, .address = name + ":7471"}, client, clock) {}

  FakeClock clock;
  FaultClient client;
  LeaderElector elector;
};

class LeaderElectionTest : public ::testing::Test {
 protected:
  LeaderElectionTest() { Candidates(hours(0)); }

  // Two new candidates; b's wall clock is ahead by `skew`.
  void Candidates(Duration skew) {
    const Time start = FakeClock().Now();
    a_ = std::make_unique<Candidate>("a", *store_, start);
    b_ = std::make_unique<Candidate>("b", *store_, start + skew);
  }

  void Advance(Duration by) {
    a_->clock.Advance(by);
    b_->clock.Advance(by);
  }

  // Second by second for `time`, each of `steps` takes a step every two seconds.
  void Pass(seconds time, std::initializer_list<Candidate*> steps) {
    for (seconds at{0}; at < time; at += seconds(2)) {
      Advance(seconds(2));
      for (Candidate* candidate : steps) candidate->elector.Step();
      ASSERT_FALSE(a_->elector.Leads() && b_->elector.Leads()) << "both lead";
    }
  }

  Json Lease() { return *store_->Get(kube::kLease, kKey); }

  std::unique_ptr<kube::memory::MemoryStore> store_ = *kube::memory::MemoryStore::Open({});
  std::unique_ptr<Candidate> a_;
  std::unique_ptr<Candidate> b_;
};

TEST_F(LeaderElectionTest, TheFirstOfTwoLeadsAndTheOtherKnowsWhere) {
  a_->elector.Step();
  b_->elector.Step();
  EXPECT_TRUE(a_->elector.Leads());
  EXPECT_EQ(b_->elector.standing(), LeaderElector::Standing::kFollowing);
  EXPECT_EQ(b_->elector.leader(), (LeaderElector::Leader{"a", "a:7471"}));
  EXPECT_EQ(Lease()["spec"]["leaseDurationSeconds"], 15);
  EXPECT_EQ(Lease()["spec"]["leaderTransitions"], 0);
}

TEST_F(LeaderElectionTest, ALeaderThatRenewsStays) {
  a_->elector.Step();
  const Json first = Lease();
  Pass(seconds(120), {a_.get(), b_.get()});
  EXPECT_TRUE(a_->elector.Leads());
  EXPECT_FALSE(b_->elector.Leads());
  EXPECT_EQ(Lease()["spec"]["acquireTime"], first["spec"]["acquireTime"]);
  EXPECT_NE(Lease()["spec"]["renewTime"], first["spec"]["renewTime"]);
}

TEST_F(LeaderElectionTest, TheOtherTakesOverWhenTheLeaseHasRunOut) {
  a_->elector.Step();
  b_->elector.Step();
  Pass(seconds(14), {b_.get()});
  EXPECT_FALSE(b_->elector.Leads()) << "before the lease's end";
  Pass(seconds(2), {b_.get()});
  EXPECT_TRUE(b_->elector.Leads());
  EXPECT_EQ(Lease()["spec"]["holderIdentity"], "b");
  EXPECT_EQ(Lease()["spec"]["leaderTransitions"], 1);
  EXPECT_EQ(b_->elector.leader().address, "b:7471");
}

TEST_F(LeaderElectionTest, SkewedClocksChangeNothing) {
  for (const Duration skew : {Duration(hours(1)), Duration(hours(-1))}) {
    SCOPED_TRACE(FormatDuration(skew));
    store_->Delete(kube::kLease, kKey, {}).IgnoreError();  // the last one's
    Candidates(skew);
    a_->elector.Step();
    Pass(seconds(60), {a_.get(), b_.get()});
    EXPECT_TRUE(a_->elector.Leads());
    Pass(seconds(14), {b_.get()});
    EXPECT_FALSE(b_->elector.Leads());
    Pass(seconds(4), {b_.get()});
    EXPECT_TRUE(b_->elector.Leads());
  }
}

TEST_F(LeaderElectionTest, AnOutageShorterThanTheDeadlineIsSurvived) {
  a_->elector.Step();
  a_->client.FailNext({}, absl::UnavailableError("cut off"), 0, /*times=*/6);
  Pass(seconds(6), {a_.get(), b_.get()});  // three steps of two calls
  EXPECT_EQ(a_->client.Pending(), 0);
  EXPECT_TRUE(a_->elector.Leads());
  Pass(seconds(30), {a_.get(), b_.get()});
  EXPECT_TRUE(a_->elector.Leads());
}

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewHasLostBeforeAnotherMayBegin) {
  a_->elector.Step();
  b_->elector.Step();
  a_->client.FailNext({}, absl::UnavailableError("cut off"), 0, 1000);
  Pass(seconds(8), {a_.get(), b_.get()});
  EXPECT_TRUE(a_->elector.Leads());
  Pass(seconds(2), {a_.get(), b_.get()});
  EXPECT_EQ(a_->elector.standing(), LeaderElector::Standing::kLost);
  EXPECT_FALSE(b_->elector.Leads());
  Pass(seconds(8), {a_.get(), b_.get()});
  EXPECT_TRUE(b_->elector.Leads());
}

TEST_F(LeaderElectionTest, LosesByTheClockAloneWhileACallHangs) {
  a_->elector.Step();
  Advance(milliseconds(9999));
  EXPECT_TRUE(a_->elector.Leads());
  Advance(milliseconds(1));
  EXPECT_FALSE(a_->elector.Leads());
}

TEST_F(LeaderElectionTest, WhoHasLostNeverLeadsAgain) {
  a_->elector.Step();
  Advance(seconds(11));
  a_->elector.Step();
  Pass(seconds(60), {a_.get()});
  EXPECT_EQ(a_->elector.standing(), LeaderElector::Standing::kLost);
}

TEST_F(LeaderElectionTest, ARenewalAnsweredAfterTheDeadlineComesTooLate) {
  a_->elector.Step();
  Advance(seconds(9));
  a_->client.SetObserver([this](const auto&) { Advance(seconds(2)); });
  a_->elector.Step();
  EXPECT_EQ(a_->elector.standing(), LeaderElector::Standing::kLost);
}

TEST_F(LeaderElectionTest, OnlyOneWinsARaceForAFreeLease) {
  // Both have seen that the lease is free before either writes.
  b_->client.SetObserver([this](const kube::testing::Call& call) {
    if (call.verb == Verb::kGet && !a_->elector.Leads()) a_->elector.Step();
  });
  b_->elector.Step();
  EXPECT_TRUE(a_->elector.Leads());
  EXPECT_FALSE(b_->elector.Leads());
}

TEST_F(LeaderElectionTest, AnAnswerThatIsLostDoesNoHarm) {
  a_->client.FailNext({.verb = Verb::kCreate}, absl::UnavailableError("cut off"), 0, 1,
                      Moment::kAfter);
  a_->elector.Step();
  EXPECT_FALSE(a_->elector.Leads());
  b_->elector.Step();
  EXPECT_FALSE(b_->elector.Leads());
  a_->elector.Step();
  EXPECT_TRUE(a_->elector.Leads());
  a_->client.FailNext({.verb = Verb::kUpdate}, absl::UnavailableError("cut off"), 0, 1,
                      Moment::kAfter);
  Pass(seconds(30), {a_.get(), b_.get()});
  EXPECT_TRUE(a_->elector.Leads()) << "its own write is no conflict with itself";
}

TEST_F(LeaderElectionTest, AForeignChangeOfTheLeaseObjectIsKeptAndTakesNothing) {
  a_->elector.Step();
  ASSERT_TRUE(
      store_->Patch(kube::kLease, kKey, {{"metadata", {{"labels", {{"team", "x"}}}}}}).ok());
  Pass(seconds(20), {a_.get(), b_.get()});
  EXPECT_TRUE(a_->elector.Leads());
  EXPECT_EQ(Lease()["metadata"]["labels"]["team"], "x");
}

TEST_F(LeaderElectionTest, LosesWhenTheLeaseIsTakenOrDeleted) {
  a_->elector.Step();
  ASSERT_TRUE(store_->Patch(kube::kLease, kKey, {{"spec", {{"holderIdentity", "c"}}}}).ok());
  a_->elector.Step();
  EXPECT_EQ(a_->elector.standing(), LeaderElector::Standing::kLost);
  ASSERT_TRUE(store_->Delete(kube::kLease, kKey, {}).ok());
  b_->elector.Step();
  ASSERT_TRUE(b_->elector.Leads());
  ASSERT_TRUE(store_->Delete(kube::kLease, kKey, {}).ok());
  b_->elector.Step();
  EXPECT_EQ(b_->elector.standing(), LeaderElector::Standing::kLost);
}

TEST_F(LeaderElectionTest, AReleasedLeaseIsTakenAtOnce) {
  a_->elector.Step();
  b_->elector.Step();
  ASSERT_TRUE(a_->elector.Release().ok());
  EXPECT_FALSE(a_->elector.Leads());
  EXPECT_EQ(Lease()["spec"]["holderIdentity"], "");
  b_->elector.Step();
  EXPECT_TRUE(b_->elector.Leads());
  EXPECT_EQ(Lease()["spec"]["leaderTransitions"], 1);
}

TEST_F(LeaderElectionTest, WhoDoesNotLeadReleasesNothing) {
  a_->elector.Step();
  b_->elector.Step();
  ASSERT_TRUE(b_->elector.Release().ok());
  EXPECT_EQ(Lease()["spec"]["holderIdentity"], "a");
}

TEST_F(LeaderElectionTest, CandidatesAskAtSpreadIntervalsAndALeaderAtASteadyPace) {
  const LeaderElectionOptions options{.lease = kKey, .identity = "x", .seed = 7};
  LeaderElector x(options, *store_, a_->clock);
  EXPECT_EQ(a_->elector.Step(), seconds(2));
  const Duration first = x.Step();
  const Duration second = x.Step();
  EXPECT_NE(first, second);
  for (const Duration wait : {first, second}) {
    EXPECT_GE(wait, seconds(2));
    EXPECT_LE(wait, milliseconds(4400));
  }
  LeaderElector again(options, *store_, a_->clock);
  EXPECT_EQ(again.Step(), first) << "the seed decides";
}

TEST(LeaderElectionOptionsTest, RefusesTimesThatDoNotFit) {
  LeaderElectionOptions good{.lease = kKey, .identity = "a"};
  EXPECT_TRUE(good.Validate().ok());
  for (const auto& [lease, renew, retry] : {std::tuple(10, 10, 2), std::tuple(0, 0, 0),
                                            std::tuple(15, 10, 10), std::tuple(15, 10, 0)}) {
    LeaderElectionOptions bad = good;
    bad.lease_duration = seconds(lease);
    bad.renew_deadline = seconds(renew);
    bad.retry_period = seconds(retry);
    EXPECT_FALSE(bad.Validate().ok()) << lease << " " << renew << " " << retry;
  }
  good.identity.clear();
  EXPECT_FALSE(good.Validate().ok());
}

}  // namespace
}  // namespace ringmaster::controller

// The operator with real ports and real time, on a store that stands for the cluster.
#include "operator/cluster/cluster_operator.h"

#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "operator/cluster/preflight.h"
#include "operator/cluster/rendezvous_secret.h"
#include "operator/cluster/testing.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"
#include "operator/rendezvous/testing/worker_client.h"
#include "tests/support/http.h"

namespace ringmaster::cluster {
namespace {

using kube::Json;
using kube::testing::FaultClient;
using rendezvous::testing::WorkerClient;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kPatience = seconds(60);
constexpr auto kGlance = milliseconds(20);

// Looks until the condition holds.
bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kGlance);
  }
  return true;
}

// One operator process: its clients, which a test may cut off, and its operator.
struct Replica {
  explicit Replica(kube::memory::MemoryStore& store)
      : work(store), election(store), reviewer(store) {}

  FaultClient work;
  FaultClient election;
  kube::TokenReviewer& reviewer;
  std::unique_ptr<ClusterOperator> op;
};

class ClusterOperatorTest : public ::testing::Test {
 protected:
  // A machine that stands still for a moment loses no election; who stops releases the lease.
  static ClusterOptions Options() {
    ClusterOptions options;
    options.own_ns = "system";
    options.host = "127.0.0.1";
    options.lease_duration = seconds(120);
    options.renew_deadline = seconds(90);
    options.retry_period = milliseconds(200);
    options.rendezvous_address = "127.0.0.1:0";
    options.settings.worker_image = "worker:1";
    return options;
  }

  static ClusterOptions Hasty() {
    ClusterOptions options = Options();
    options.lease_duration = seconds(2);
    options.renew_deadline = milliseconds(1500);
    return options;
  }

  // A web server takes its time to end, so only the tests that ask it have one.
  static ClusterOptions WithPages() {
    ClusterOptions options = Options();
    options.metrics_address = "127.0.0.1:0";
    return options;
  }

  void Start(Replica& replica, ClusterOptions options = Options()) {
    auto op = ClusterOperator::Start(
        std::move(options), {replica.work, replica.election, replica.reviewer}, SystemClock());
    ASSERT_TRUE(op.ok()) << op.status();
    replica.op = *std::move(op);
  }

  static bool Leads(Replica& replica) {
    return Eventually([&] { return replica.op->leads(); });
  }
  static std::string Get(Replica& replica, const std::string& path) {
    return ringmaster::testing::HttpGet(replica.op->metrics_port(), path);
  }
  static std::string Address(const Replica& replica) {
    return "127.0.0.1:" + std::to_string(replica.op->rendezvous_port());
  }

  // With one field more in its spec.
  static Json NewerDefinition() {
    Json crd = testing::CheckedInCrd();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
       ["tomorrow"] = {{"type", "string"}};
    return crd;
  }
  // The store then takes what the new definition may let in.
  void ReplaceDefinition(Json crd) {
    const auto before = store_->Get(kCustomResourceDefinition, {"", kube::Name(crd)});
    crd["metadata"] = (*before)["metadata"];
    const auto replaced = store_->Update(kCustomResourceDefinition, crd);
    ASSERT_TRUE(replaced.ok()) << replaced.status();
    store_->SetAdmission(kube::kTrainingJob,
                         [](kube::memory::AdmissionRequest&) { return absl::OkStatus(); });
  }

  void CreateJob(const std::string& name, int workers, const char* unknown_field = nullptr) {
    Json job = kube::NewObject(kube::kTrainingJob, {"default", name});
    job["spec"] = {
        {"workers", {{"replicas", workers}}},
        {"trainer",
         {{"model", {{"zoo", {{"name", "lenet-bn"}}}}},
          {"data", {{"csv", {{"path", "digits.csv"}, {"classes", 10}, {"shape", {1, 8, 8}}}}}},
          {"optimizer", {{"sgd", {{"learningRate", 0.1}}}}},
          {"batch", {{"size", 64}}},
          {"epochs", 1}}}};
    if (unknown_field != nullptr) job["spec"][unknown_field] = "yes";
    const auto created = store_->Create(kube::kTrainingJob, job);
    ASSERT_TRUE(created.ok()) << created.status();
  }

  std::vector<kube::ObjectPtr> Pods() { return store_->List(kube::kPod, "default", {})->items; }
  bool PodsAre(size_t count) {
    return Eventually([&] { return Pods().size() == count; });
  }
  std::string Authority() {
    return LoadOrCreateRendezvousSecret(*store_, {"system", "ringmaster-operator-rendezvous"},
                                        SystemClock())
        ->ca_pem;
  }

  // What the rendezvous answers to a Hello of this pod with this token.
  rendezvous::v1::ToWorker Greet(const Replica& replica, const Json& pod,
                                 const std::string& token) {
    WorkerClient client(Address(replica), Authority());
    rendezvous::v1::Hello hello = rendezvous::testing::MakeHello(kube::Name(pod), kube::Uid(pod));
    hello.set_token(token);
    client.Hello(hello);
    return client.Next().value_or(rendezvous::v1::ToWorker());
  }
  std::string Token(const Json& pod, const std::string& audience = contract::kTokenAudience) {
    return *store_->IssuePodToken(kube::KeyOf(pod), audience, std::chrono::hours(1));
  }

  std::unique_ptr<kube::memory::MemoryStore> store_ = testing::MakeCluster();
  Replica first_{*store_};
  Replica second_{*store_};
};

TEST_F(ClusterOperatorTest, MakesPodsWithWhatAClusterNeeds) {
  Start(first_);
  CreateJob("digits", 2);
  ASSERT_TRUE(PodsAre(2));
  const Json pod = *Pods()[0];
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "worker:1");
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
  EXPECT_EQ(pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"], false);
  std::map<std::string, std::string> environment;
  for (const Json& entry : pod["spec"]["containers"][0]["env"])
    environment[entry["name"]] = entry.value("value", "");
  EXPECT_EQ(environment[contract::kEnvRendezvous], Address(first_));
  EXPECT_EQ(environment[contract::kEnvRendezvousCa], Authority());
}

TEST_F(ClusterOperatorTest, TheSecondGoesOnWhereTheFirstStops) {
  Start(first_);
  ASSERT_TRUE(Leads(first_));
  Start(second_);
  CreateJob("digits", 2);
  ASSERT_TRUE(PodsAre(2));
  EXPECT_FALSE(second_.op->leads());
  first_.op->Stop();
  ASSERT_TRUE(Leads(second_));
  CreateJob("more", 1);
  ASSERT_TRUE(PodsAre(3)) << "the first job's pods are as they were";
}

TEST_F(ClusterOperatorTest, ReleasesTheLeaseBeforeItWritesTheLastEvents) {
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false;
  int before = 0;  // events, by when the lease was released
  int after = 0;
  Replica first(*store_);
  first.work.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb != kube::testing::Verb::kCreate || call.type != kube::kEvent.Qualified()) return;
    std::unique_lock lock(mutex);
    ++(released ? after : before);
    // A server that is slow with events, and has not answered the first when the operator stops.
    changed.wait_for(lock, kPatience, [&] { return released; });
  });
  first.election.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb != kube::testing::Verb::kUpdate) return;
    const auto lease = store_->Get(kube::kLease, call.key);
    if (!kube::FindString(*lease, {"spec", "holderIdentity"}).empty()) return;
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  });
  Start(first);
  ASSERT_TRUE(Leads(first));
  CreateJob("train", 2);
  CreateJob("other", 2);
  ASSERT_TRUE(PodsAre(4));  // which both jobs have an event about
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return before == 1;
  }));
  first.op->Stop();
  EXPECT_TRUE(released);
  EXPECT_EQ(before, 1);
  EXPECT_GE(after, 1);
}

TEST_F(ClusterOperatorTest, ALeaderThatCannotRenewEndsAndRefusesWorkers) {
  Start(first_, Hasty());
  ASSERT_TRUE(Leads(first_));
  CreateJob("digits", 1);
  ASSERT_TRUE(PodsAre(1));
  const Json pod = *Pods()[0];
  first_.election.FailNext({}, absl::UnavailableError("cut off"), 0, 1'000'000);
  Start(second_);
  ASSERT_TRUE(Eventually([&] { return first_.op->Ended().has_value(); }));
  EXPECT_TRUE(absl::IsAborted(*first_.op->Ended()));
  EXPECT_TRUE(Greet(first_, pod, Token(pod)).has_refused());
  ASSERT_TRUE(Leads(second_));
  EXPECT_TRUE(Greet(second_, pod, Token(pod)).has_accepted());
  EXPECT_EQ(Pods().size(), 1u);
}

TEST_F(ClusterOperatorTest, AStandbySaysWhereTheLeaderIs) {
  Start(first_);
  ASSERT_TRUE(Leads(first_));
  Start(second_);
  CreateJob("digits", 1);
  ASSERT_TRUE(PodsAre(1));
  const Json pod = *Pods()[0];
  ASSERT_TRUE(Eventually([&] { return second_.op->rendezvous_port() != 0; }));
  ASSERT_TRUE(Eventually(
      [&] { return Greet(second_, pod, Token(pod)).refused().leader() == Address(first_); }));
  EXPECT_FALSE(Greet(second_, pod, Token(pod)).refused().permanent());
}

TEST_F(ClusterOperatorTest, TakesAWorkerInByItsOwnTokenAlone) {
  Start(first_);
  CreateJob("digits", 2);
  ASSERT_TRUE(PodsAre(2));
  ASSERT_TRUE(Leads(first_));
  const Json mine = *Pods()[0];
  const Json other = *Pods()[1];
  EXPECT_TRUE(Greet(first_, mine, Token(mine)).has_accepted());
  // No token, garbage, for another audience: the worker may come again with a better one.
  for (const std::string& token :
       {std::string(), std::string("garbage"), Token(mine, "elsewhere")}) {
    const auto answer = Greet(first_, mine, token);
    EXPECT_TRUE(answer.has_refused()) << token;
    EXPECT_FALSE(answer.refused().permanent()) << token;
  }
  const auto stolen = Greet(first_, mine, Token(other));
  EXPECT_TRUE(stolen.refused().permanent());
  EXPECT_THAT(stolen.refused().reason(), HasSubstr("the token is of pod default/digits-1-0"));
}

TEST_F(ClusterOperatorTest, SpeaksTlsAlone) {
  Start(first_);
  CreateJob("digits", 1);
  ASSERT_TRUE(PodsAre(1));
  ASSERT_TRUE(Leads(first_));
  WorkerClient plain(Address(first_));
  plain.Hello(rendezvous::testing::MakeHello("digits-0-0", "u"));
  EXPECT_FALSE(plain.Next().has_value());
  const auto stranger =
      SelfSignedCertificate(contract::kRendezvousServerName, SystemClock().Now(), seconds(600));
  WorkerClient misled(Address(first_), stranger->certificate_pem);
  misled.Hello(rendezvous::testing::MakeHello("digits-0-0", "u"));
  EXPECT_FALSE(misled.Next().has_value());
}

TEST_F(ClusterOperatorTest, ReadyOnceItKnowsItsPlace) {
  first_.work.FailNext({}, absl::UnavailableError("no route to host"), 0, 2);
  Start(first_, WithPages());
  EXPECT_THAT(Get(first_, "/readyz"), AllOf(HasSubstr("503"), HasSubstr("waits for")));
  EXPECT_THAT(Get(first_, "/healthz"), HasSubstr("200 OK"));
  ASSERT_TRUE(Leads(first_));
  EXPECT_THAT(Get(first_, "/readyz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(first_, "/metrics"), HasSubstr("ringmaster_operator_leading 1"));
  Start(second_, WithPages());
  EXPECT_TRUE(Eventually([&] {
    return Get(second_, "/readyz").find("200 OK") != std::string::npos;
  })) << "a standby answers workers, so it is ready too";
  EXPECT_THAT(Get(second_, "/metrics"), HasSubstr("ringmaster_operator_leading 0"));
}

TEST_F(ClusterOperatorTest, EndsWithAClearMessageWhereTheDefinitionIsMissing) {
  store_ = testing::MakeCluster(nullptr);
  Replica replica(*store_);
  ClusterOptions options = WithPages();
  options.definition_gone_after = milliseconds(100);
  Start(replica, options);
  ASSERT_TRUE(Eventually([&] { return replica.op->Ended().has_value(); }));
  EXPECT_THAT(std::string(replica.op->Ended()->message()), HasSubstr("kubectl apply"));
  EXPECT_THAT(Get(replica, "/readyz"), HasSubstr("503"));
}

TEST_F(ClusterOperatorTest, WaitsAtItsStartForAnApiServerThatDoesNotKnowTheDefinitionYet) {
  first_.work.FailNext({.type = kCustomResourceDefinition.Qualified()},
                       absl::NotFoundError("not yet"), 0, 2);
  Start(first_);
  EXPECT_TRUE(Leads(first_));
  EXPECT_EQ(first_.work.Pending(), 0);
}

TEST_F(ClusterOperatorTest, GoesOnWhereTheDefinitionIsNotFoundForAMoment) {
  ClusterOptions options = Options();
  options.look_at_definition = milliseconds(20);
  options.definition_gone_after = std::chrono::hours(1);
  Start(first_, options);
  ASSERT_TRUE(Leads(first_));
  first_.election.FailNext({.type = kCustomResourceDefinition.Qualified()},
                           absl::NotFoundError("not yet"), 0, 10);
  ASSERT_TRUE(Eventually([&] { return first_.election.Pending() == 0; }));
  EXPECT_FALSE(first_.op->Ended().has_value());
  CreateJob("digits", 1);
  EXPECT_TRUE(PodsAre(1));
}

TEST_F(ClusterOperatorTest, EndsWhenTheDefinitionIsGone) {
  ClusterOptions options = Options();
  options.look_at_definition = milliseconds(20);
  options.definition_gone_after = milliseconds(500);
  Start(first_, options);
  ASSERT_TRUE(Leads(first_));
  const auto deleted = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      store_->Delete(kCustomResourceDefinition, {"", kube::kTrainingJob.Qualified()}, {}).ok());
  ASSERT_TRUE(Eventually([&] { return first_.op->Ended().has_value(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - deleted, options.definition_gone_after);
  EXPECT_TRUE(absl::IsFailedPrecondition(*first_.op->Ended()));
  EXPECT_THAT(std::string(first_.op->Ended()->message()),
              AllOf(HasSubstr("does not know trainingjobs"), HasSubstr("kubectl apply")));
}

TEST_F(ClusterOperatorTest, AnUnknownFieldAndADefinitionNotFoundForAMomentFailNobody) {
  Start(first_);
  ASSERT_TRUE(Leads(first_));
  store_->SetAdmission(kube::kTrainingJob,
                       [](kube::memory::AdmissionRequest&) { return absl::OkStatus(); });
  first_.work.FailNext({.type = kCustomResourceDefinition.Qualified()},
                       absl::NotFoundError("not yet"));
  CreateJob("digits", 1, "tomorrow");
  ASSERT_TRUE(Eventually([&] {
    return kube::FindString(*store_->Get(kube::kTrainingJob, {"default", "digits"}),
                            {"status", "state"}) == "Failed";
  })) << "it is looked at again";
  EXPECT_EQ(first_.work.Pending(), 0);
  EXPECT_FALSE(first_.op->Ended().has_value());
}

TEST_F(ClusterOperatorTest, EndsWithTheSameMessageWhenTheDefinitionIsReplacedWhileItRuns) {
  ClusterOptions options = Options();
  options.look_at_definition = milliseconds(20);
  Start(first_, options);
  ASSERT_TRUE(Leads(first_));
  Start(second_, options);
  ASSERT_TRUE(Eventually([&] { return second_.op->rendezvous_port() != 0; }));
  ReplaceDefinition(NewerDefinition());
  for (Replica* replica : {&first_, &second_}) {
    ASSERT_TRUE(Eventually([&] { return replica->op->Ended().has_value(); }));
    EXPECT_EQ(*replica->op->Ended(), CheckCustomResource(*store_, ""));
    EXPECT_THAT(std::string(replica->op->Ended()->message()),
                HasSubstr("is newer than this operator, which does not know spec.tomorrow"));
  }
}

TEST_F(ClusterOperatorTest, FailsNoJobForAFieldOfADefinitionThatItHasNotLookedAtYet) {
  ClusterOptions options = Options();
  options.look_at_definition = std::chrono::hours(1);
  Start(first_, options);
  ASSERT_TRUE(Leads(first_));
  ReplaceDefinition(NewerDefinition());
  CreateJob("digits", 1, "tomorrow");
  ASSERT_TRUE(Eventually([&] { return first_.op->Ended().has_value(); }));
  EXPECT_THAT(std::string(first_.op->Ended()->message()), HasSubstr("spec.tomorrow"));
  EXPECT_FALSE(store_->Get(kube::kTrainingJob, {"default", "digits"})->contains("status"));
}

TEST_F(ClusterOperatorTest, GoesOnWhereTheDefinitionCannotBeLookedAt) {
  ClusterOptions options = Options();
  options.look_at_definition = milliseconds(20);
  const kube::testing::CallFilter looks{.type = kCustomResourceDefinition.Qualified()};
  Start(first_, options);
  ASSERT_TRUE(Leads(first_));
  first_.election.FailNext(looks, absl::UnavailableError("cut off"));
  first_.election.FailNext(looks, absl::PermissionDeniedError("no"));
  ASSERT_TRUE(Eventually([&] { return first_.election.Pending() == 0; }));
  EXPECT_FALSE(first_.op->Ended().has_value());
  CreateJob("digits", 1);
  EXPECT_TRUE(PodsAre(1));
}

TEST_F(ClusterOperatorTest, LeavesOtherNamespacesAlone) {
  ClusterOptions options = Options();
  options.ns = "elsewhere";
  Start(first_, options);
  ASSERT_TRUE(Leads(first_));
  CreateJob("digits", 1);
  Json job = *store_->Get(kube::kTrainingJob, {"default", "digits"});
  job["metadata"] = {{"name", "here"}, {"namespace", "elsewhere"}};
  job.erase("status");
  ASSERT_TRUE(store_->Create(kube::kTrainingJob, job).ok());
  ASSERT_TRUE(
      Eventually([&] { return !store_->List(kube::kPod, "elsewhere", {})->items.empty(); }));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(ClusterOperatorTest, RefusesWhatCannotWork) {
  Start(first_, WithPages());
  ClusterOptions options = Options();
  options.metrics_address = "127.0.0.1:" + std::to_string(first_.op->metrics_port());
  const ClusterOperator::Clients clients{second_.work, second_.election, second_.reviewer};
  EXPECT_TRUE(
      absl::IsUnavailable(ClusterOperator::Start(options, clients, SystemClock()).status()));
  options = Options();
  options.host.clear();
  EXPECT_TRUE(
      absl::IsInvalidArgument(ClusterOperator::Start(options, clients, SystemClock()).status()));
  options = Options();
  options.renew_deadline = options.lease_duration + seconds(1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(ClusterOperator::Start(options, clients, SystemClock()).status()));
}

TEST_F(ClusterOperatorTest, AGangSchedulerThatIsNoneIsRefused) {
  ClusterOptions options = Options();
  options.gang = "yarn";
  Replica replica(*store_);
  const auto op = ClusterOperator::Start(
      options, {replica.work, replica.election, replica.reviewer}, SystemClock());
  EXPECT_TRUE(absl::IsInvalidArgument(op.status()));
  EXPECT_THAT(op.status().message(), HasSubstr("volcano"));
}

}  // namespace
}  // namespace ringmaster::cluster

#include "operator/controller/controller.h"

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::controller {
namespace {

using kube::Json;
using kube::kConfigMap;
using std::chrono::milliseconds;
using std::chrono::seconds;

const ObjectKey kA{"ns", "a"};

class ScriptedReconciler : public Reconciler {
 public:
  ReconcileResult Reconcile(const ObjectKey& key) override {
    ++passes;
    return next(key);
  }

  int passes = 0;
  std::function<ReconcileResult(const ObjectKey&)> next = [](const ObjectKey&) { return Done{}; };
};

class CountingObserver : public ControllerObserver {
 public:
  void OnReconcile(std::string_view result, Duration) override {
    const std::lock_guard lock(mutex_);
    ++counts_[std::string(result)];
  }
  void OnQueueDepth(std::size_t depth) override {
    const std::lock_guard lock(mutex_);
    depths_.push_back(depth);
  }
  int Count(const std::string& result) {
    const std::lock_guard lock(mutex_);
    return counts_[result];
  }
  std::vector<std::size_t> Depths() {
    const std::lock_guard lock(mutex_);
    return depths_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::vector<std::size_t> depths_;
};

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest()
      : controller_({.name = "test", .observer = &observer_}, queue_, reconciler_, clock_) {}

  FakeClock clock_;
  WorkQueue queue_{clock_, {milliseconds(10), seconds(1)}};
  ScriptedReconciler reconciler_;
  CountingObserver observer_;
  Controller controller_;
};

TEST_F(ControllerTest, DoneLeavesTheKeyAloneUntilItIsAddedAgain) {
  queue_.Add(kA);
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(*controller_.RunUntilIdle(), 0);
  EXPECT_EQ(observer_.Count("done"), 1);
}

TEST_F(ControllerTest, RequeueAfterBringsTheKeyBackAtItsTime) {
  reconciler_.next = [](const ObjectKey&) { return RequeueAfter{seconds(30)}; };
  queue_.Add(kA);
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  clock_.Advance(seconds(29));
  EXPECT_EQ(*controller_.RunUntilIdle(), 0);
  clock_.Advance(seconds(1));
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  EXPECT_EQ(observer_.Count("requeue_after"), 2);
}

TEST_F(ControllerTest, RetryBacksOffAndASuccessClearsTheFailures) {
  reconciler_.next = [this](const ObjectKey&) -> ReconcileResult {
    if (reconciler_.passes <= 2) return Retry{absl::UnavailableError("away")};
    return Done{};
  };
  queue_.Add(kA);
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(*controller_.RunUntilIdle(), 0);
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  EXPECT_EQ(queue_.Failures(kA), 0);
  EXPECT_EQ(observer_.Count("retry"), 2);
}

TEST_F(ControllerTest, TerminalIsNotRetried) {
  reconciler_.next = [](const ObjectKey&) { return Terminal{absl::InvalidArgumentError("never")}; };
  queue_.Add(kA);
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  EXPECT_EQ(queue_.NextDue(), std::nullopt);
  EXPECT_EQ(observer_.Count("terminal"), 1);
}

TEST_F(ControllerTest, EachPassTellsHowManyKeysStillWait) {
  for (const char* name : {"x", "y", "z"}) queue_.Add({"default", name});
  EXPECT_EQ(*controller_.RunUntilIdle(), 3);
  EXPECT_EQ(observer_.Depths(), (std::vector<std::size_t>{2, 1, 0}));
}

TEST_F(ControllerTest, AnExceptionIsARetry) {
  reconciler_.next = [](const ObjectKey&) -> ReconcileResult { throw std::runtime_error("bug"); };
  queue_.Add(kA);
  EXPECT_EQ(*controller_.RunUntilIdle(), 1);
  EXPECT_EQ(queue_.Failures(kA), 1);
  EXPECT_EQ(observer_.Count("retry"), 1);
}

TEST_F(ControllerTest, ALoopThatFeedsItselfIsReported) {
  reconciler_.next = [this](const ObjectKey& key) {
    queue_.Add(key);
    return Done{};
  };
  queue_.Add(kA);
  EXPECT_EQ(controller_.RunUntilIdle(50).status().code(), absl::StatusCode::kResourceExhausted);
}

// Makes a copy "NAME-copy" of each config map that is none, from the informer's view: a whole
// controller in small.
class Copier : public Reconciler {
 public:
  Copier(kube::Client& client, const Informer& informer) : client_(client), informer_(informer) {}

  ReconcileResult Reconcile(const ObjectKey& key) override {
    const ObjectPtr source = informer_.Get(key);
    if (source == nullptr || key.name.ends_with("-copy")) return Done{};
    Json copy = kube::NewObject(kConfigMap, {key.ns, key.name + "-copy"});
    kube::AddOwnerReference(copy, kube::OwnerReference(kConfigMap, *source));
    absl::Status status = client_.Create(kConfigMap, copy).status();
    return status.code() == absl::StatusCode::kAlreadyExists ? Done{}
                                                             : RetryIfError(std::move(status));
  }

 private:
  kube::Client& client_;
  const Informer& informer_;
};

class WholeControllerTest : public ::testing::Test {
 protected:
  Json Create(const std::string& name) {
    return *store_->Create(kConfigMap, kube::NewObject(kConfigMap, {"ns", name}));
  }
  bool Exists(const std::string& name) { return store_->Get(kConfigMap, {"ns", name}).ok(); }

  std::unique_ptr<kube::memory::MemoryStore> store_ = *kube::memory::MemoryStore::Open({});
  kube::testing::FaultClient client_{*store_};
};

TEST_F(WholeControllerTest, StepsWithoutThreadsUnderAFakeClock) {
  FakeClock clock;
  WorkQueue queue(clock);
  Informer informer(client_, kConfigMap, {});
  informer.AddHandler(EnqueueSelf(queue));
  Copier copier(client_, informer);
  Controller controller({.name = "copier"}, queue, copier, clock);
  controller.AddInformer(informer);
  client_.FailNext({.verb = kube::testing::Verb::kCreate}, absl::UnavailableError("cut off"));
  Create("a");
  EXPECT_EQ(*controller.RunUntilIdle(), 1);
  EXPECT_FALSE(Exists("a-copy"));
  clock.Advance(seconds(1));
  EXPECT_EQ(*controller.RunUntilIdle(), 2);  // the retry, and the copy's own change
  EXPECT_TRUE(Exists("a-copy"));
  EXPECT_EQ(client_.Pending(), 0);
}

TEST_F(WholeControllerTest, AnAnswerThatWasLostIsMadeGoodByAlreadyExists) {
  FakeClock clock;
  WorkQueue queue(clock);
  Informer informer(client_, kConfigMap, {});
  informer.AddHandler(EnqueueSelf(queue));
  Copier copier(client_, informer);
  Controller controller({.name = "copier"}, queue, copier, clock);
  controller.AddInformer(informer);
  client_.FailNext({.verb = kube::testing::Verb::kCreate}, absl::DeadlineExceededError("no answer"),
                   0, 1, kube::testing::Moment::kAfter);
  Create("a");
  ASSERT_TRUE(controller.RunUntilIdle().ok());
  EXPECT_TRUE(Exists("a-copy"));
  clock.Advance(seconds(1));
  ASSERT_TRUE(controller.RunUntilIdle().ok());
  EXPECT_EQ(queue.NextDue(), std::nullopt);
}

TEST_F(WholeControllerTest, RunsWithThreads) {
  WorkQueue queue(SystemClock());
  Informer informer(client_, kConfigMap, {});
  informer.AddHandler(EnqueueSelf(queue));
  Copier copier(client_, informer);
  Controller controller({.name = "copier", .workers = 3}, queue, copier, SystemClock());
  controller.AddInformer(informer);
  Create("a");
  const std::string from = store_->List(kConfigMap, "ns", {})->resource_version;
  auto watch = *store_->Watch(kConfigMap, "ns", {.resource_version = from});
  ASSERT_TRUE(controller.Start().ok());
  const auto copied = watch->Next(seconds(20));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(kube::Name(*copied->object), "a-copy");
  controller.Stop();
}

TEST_F(WholeControllerTest, StartFailsWhenAnInformerCannotSync) {
  client_.FailNext({.verb = kube::testing::Verb::kList}, absl::UnavailableError("cut off"), 0,
                   1000000);
  WorkQueue queue(SystemClock());
  Informer informer(client_, kConfigMap, {});
  Copier copier(client_, informer);
  Controller controller({.name = "copier", .sync_timeout = milliseconds(50)}, queue, copier,
                        SystemClock());
  controller.AddInformer(informer);
  EXPECT_EQ(controller.Start().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace ringmaster::controller

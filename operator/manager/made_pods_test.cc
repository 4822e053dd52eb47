#include "operator/manager/made_pods.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"

namespace ringmaster::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kIndex[] = "owner";

class MadePodsTest : public ::testing::Test {
 protected:
  MadePodsTest() {
    cache_.AddIndex(kIndex, controller::IndexByOwnerUid());
    cache_.AddHandler([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
      made_.Seen(after == nullptr ? *before : *after);
    });
    Pump();
  }

  kube::ObjectPtr Make(const std::string& name) {
    kube::Json pod = kube::NewObject(kube::kPod, {"default", name});
    pod["spec"]["containers"] = kube::Json::array({{{"name", "w"}, {"image", "w"}}});
    kube::AddOwnerReference(pod, kube::OwnerReference(kube::kTrainingJob, job_));
    return std::make_shared<const kube::Json>(*store_->Create(kube::kPod, pod));
  }
  void Delete(const std::string& name) {
    ASSERT_TRUE(
        store_->Delete(kube::kPod, {"default", name}, {.grace_period = std::chrono::seconds(0)})
            .ok());
  }
  void Pump() { ASSERT_TRUE(cache_.Pump().ok()); }
  std::vector<std::string> Names() { return NamesOf(kube::Uid(job_)); }
  std::vector<std::string> NamesOf(const std::string& owner) {
    std::vector<std::string> names;
    for (const kube::ObjectPtr& pod : made_.With(kIndex, owner)) names.push_back(kube::Name(*pod));
    return names;
  }

  FakeClock clock_;
  std::unique_ptr<kube::memory::MemoryStore> store_ =
      kube::memory::MemoryStore::Open({.clock = &clock_}).value();
  const kube::Json job_ = *store_->Create(
      kube::kTrainingJob, kube::NewObject(kube::kTrainingJob, {"default", "digits"}));
  controller::Informer cache_{*store_, kube::kPod, {.clock = &clock_}};
  MadePods made_{cache_, clock_};
};

TEST_F(MadePodsTest, APodIsThereBeforeTheCacheShowsIt) {
  made_.Record(Make("a"));
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_THAT(NamesOf("another"), IsEmpty());
  Pump();
  EXPECT_THAT(Names(), ElementsAre("a")) << "once";
}

TEST_F(MadePodsTest, APodThatTheCacheHasShownIsGoneWhenTheCacheSaysSo) {
  made_.Record(Make("a"));
  Pump();
  Delete("a");
  Pump();
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(MadePodsTest, TheCacheMayShowAPodBeforeItsCreationIsAnswered) {
  const kube::ObjectPtr pod = Make("a");
  Pump();
  made_.Record(pod);
  Delete("a");
  Pump();
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(MadePodsTest, APodIsBelievedHoweverFarTheWatchIsBehind) {
  made_.Record(Make("a"));
  clock_.Advance(std::chrono::seconds(59));
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_TRUE(made_.LookAgainIn(kube::Uid(job_))) << "no event may bring another look";
  Pump();
  EXPECT_FALSE(made_.LookAgainIn(kube::Uid(job_)));
}

TEST_F(MadePodsTest, APodThatALaterListDoesNotHaveIsGone) {
  made_.Record(Make("a"));
  clock_.Advance(std::chrono::milliseconds(1));
  Delete("a");
  store_->ExpireHistory();
  EXPECT_THAT(Names(), ElementsAre("a"));
  Pump();
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_FALSE(made_.LookAgainIn(kube::Uid(job_)));
}

TEST_F(MadePodsTest, APodThatNobodyEverSpeaksOfIsForgotten) {
  made_.Record(Make("a"));
  clock_.Advance(std::chrono::seconds(61));
  EXPECT_THAT(Names(), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::manager

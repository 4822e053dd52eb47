#include "operator/manager/own_writes.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace ringmaster::manager {
namespace {

const kube::ObjectKey kJob{"default", "digits"};

// The object as it was at this resourceVersion.
kube::ObjectPtr At(const std::string& version) {
  kube::Json job = kube::NewObject(kube::kTrainingJob, kJob);
  job["metadata"]["resourceVersion"] = version;
  return std::make_shared<const kube::Json>(std::move(job));
}

class OwnWritesTest : public ::testing::Test {
 protected:
  // What Newest makes of a cache that shows this version.
  std::string Newest(const std::string& cached) {
    return kube::ResourceVersion(*writes_.Newest(kJob, At(cached)));
  }

  OwnWrites writes_;
};

TEST_F(OwnWritesTest, LeavesTheCacheAloneWhenNothingWasWritten) {
  EXPECT_EQ(Newest("1"), "1");
  EXPECT_EQ(writes_.Newest(kJob, nullptr), nullptr);
}

TEST_F(OwnWritesTest, ReplacesTheCopyThatWasOverwritten) {
  writes_.Record(kJob, "1", At("2"));
  EXPECT_EQ(Newest("1"), "2");
  EXPECT_EQ(Newest("1"), "2") << "for as long as the cache shows it";
}

TEST_F(OwnWritesTest, ReplacesEachCopyThatARowOfWritesHasOverwritten) {
  writes_.Record(kJob, "1", At("2"));
  writes_.Record(kJob, "2", At("3"));
  EXPECT_EQ(Newest("1"), "3");
  EXPECT_EQ(Newest("2"), "3");
}

TEST_F(OwnWritesTest, TrustsTheCacheFromThenOnOnceItShowsSomethingElse) {
  writes_.Record(kJob, "1", At("2"));
  EXPECT_EQ(Newest("2"), "2");
  EXPECT_EQ(Newest("1"), "1") << "forgotten";
}

TEST_F(OwnWritesTest, NeverHidesAChangeThatSomebodyElseMade) {
  writes_.Record(kJob, "1", At("2"));
  EXPECT_EQ(Newest("9"), "9");
}

TEST_F(OwnWritesTest, BeginsAnewWhenTheWriteWasNotOverItsOwnLast) {
  writes_.Record(kJob, "1", At("2"));
  writes_.Record(kJob, "5", At("6"));
  EXPECT_EQ(Newest("5"), "6");
  EXPECT_EQ(Newest("1"), "1") << "an informer that began anew may show it, and it is not older";
}

TEST_F(OwnWritesTest, ForgetsAJobThatIsGone) {
  writes_.Record(kJob, "1", At("2"));
  EXPECT_EQ(writes_.Newest(kJob, nullptr), nullptr);
  EXPECT_EQ(Newest("1"), "1");
}

TEST_F(OwnWritesTest, KeepsWhatTheTrimLeaves) {
  OwnWrites small([](const kube::Json& job) {
    kube::Json kept = job;
    kept.erase("kind");
    return kept;
  });
  small.Record(kJob, "1", At("2"));
  const kube::ObjectPtr newest = small.Newest(kJob, At("1"));
  EXPECT_EQ(kube::ResourceVersion(*newest), "2");
  EXPECT_FALSE(newest->contains("kind"));
}

TEST_F(OwnWritesTest, KeepsJobsApart) {
  writes_.Record({"default", "other"}, "1", At("2"));
  EXPECT_EQ(Newest("1"), "1");
}

}  // namespace
}  // namespace ringmaster::manager

#include "cli/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"
#include "operator/kube/memory/store.h"

namespace ringmaster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SnapshotTest : public ::testing::Test {
 protected:
  // A journal with one job, written by a store that is still open.
  void StartJob() {
    ASSERT_TRUE(MakeDirectories(directory_.path()).ok());
    kube::memory::StoreOptions options;
    options.journal_path = directory_.journal().string();
    auto store = kube::memory::MemoryStore::Open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ASSERT_TRUE(store_->Create(kube::kTrainingJob, job_).ok());
  }

  const nlohmann::json job_ = {{"apiVersion", "training.ringmaster.dev/v1alpha1"},
                               {"kind", "TrainingJob"},
                               {"metadata", {{"name", "digits"}, {"namespace", "default"}}},
                               {"spec", {{"suspend", false}}}};
  const TemporaryFolder root_ = TemporaryFolder::Make().value();
  const RunDirectory directory_{"digits", root_.path()};
  std::unique_ptr<kube::memory::MemoryStore> store_;
};

TEST_F(SnapshotTest, ShowsAJobWhoseStoreIsOpenAndLeavesItAlone) {
  StartJob();
  const auto snapshot = Snapshot::Of(directory_);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->job()["metadata"]["name"], "digits");
  EXPECT_TRUE(
      store_->Create(kube::kEvent, {{"metadata", {{"name", "e"}, {"namespace", "default"}}}}).ok());
  EXPECT_EQ(Snapshot::Of(directory_)->events().size(), 1u);
}

TEST_F(SnapshotTest, UnknownJobIsAnErrorThatNamesTheOnesThatAreThere) {
  EXPECT_THAT(Message(Snapshot::Of(directory_).status()),
              HasSubstr("digits: no such job under " + root_.path().string()));
  StartJob();
  const auto other = Snapshot::Of(RunDirectory("digit", root_.path()));
  EXPECT_TRUE(absl::IsNotFound(other.status()));
  EXPECT_THAT(Message(other.status()), HasSubstr("there are: digits"));
}

TEST_F(SnapshotTest, LineThatIsBeingWrittenIsLeftOut) {
  StartJob();
  std::string content = ReadFile(directory_.journal()).value();
  ASSERT_TRUE(WriteFileAtomically(directory_.journal(), content + "half a li").ok());
  EXPECT_TRUE(Snapshot::Of(directory_).ok());
}

TEST_F(SnapshotTest, DamagedJournalIsAnErrorThatNamesItsLine) {
  StartJob();
  std::string content = ReadFile(directory_.journal()).value();
  ASSERT_TRUE(WriteFileAtomically(directory_.journal(), "rubbish\n" + content).ok());
  const auto snapshot = Snapshot::Of(directory_);
  EXPECT_TRUE(absl::IsDataLoss(snapshot.status())) << snapshot.status();
  EXPECT_THAT(Message(snapshot.status()), HasSubstr(directory_.journal().string() + ":1: "));
}

}  // namespace
}  // namespace ringmaster::cli

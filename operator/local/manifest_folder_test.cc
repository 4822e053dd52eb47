#include "operator/local/manifest_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"

namespace ringmaster::local {
namespace {

std::string Manifest(const std::string& name, int replicas) {
  return "apiVersion: training.ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " +
         name + "}\nspec:\n  workers:\n    replicas: " + std::to_string(replicas) +
         "\n    template: {spec: {containers: [{name: w, command: [\"true\"]}]}}\n";
}

class ManifestFolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(path_ / file, text).ok());
  }
  kube::Json Job(const std::string& name) {
    const auto job = store_->Get(kube::kTrainingJob, {"default", name});
    return job.ok() ? *job : kube::Json();
  }

  const TemporaryFolder temporary_ = TemporaryFolder::Make().value();
  const std::filesystem::path path_ = temporary_.path();
  std::unique_ptr<kube::memory::MemoryStore> store_ = kube::memory::MemoryStore::Open({}).value();
  ManifestFolder folder_{path_, *store_};
};

TEST_F(ManifestFolderTest, FileBecomesAJobAndItsChangeAnUpdate) {
  Write("a.yaml", Manifest("a", 1));
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_EQ(Job("a")["spec"]["workers"]["replicas"], 1);
  Write("a.yaml", Manifest("a", 3));
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_EQ(Job("a")["spec"]["workers"]["replicas"], 3);
}

TEST_F(ManifestFolderTest, RemovedFileDeletesItsJobAlsoAfterARestart) {
  Write("a.yaml", Manifest("a", 1));
  ASSERT_TRUE(folder_.Sync().ok());
  std::filesystem::remove(path_ / "a.yaml");
  ManifestFolder restarted(path_, *store_);
  ASSERT_TRUE(restarted.Sync().ok());
  EXPECT_TRUE(Job("a").is_null());
}

TEST_F(ManifestFolderTest, JobFromElsewhereIsLeftAlone) {
  kube::Json job = kube::NewObject(kube::kTrainingJob, {"default", "mine"});
  ASSERT_TRUE(store_->Create(kube::kTrainingJob, job).ok());
  Write("a.yaml", Manifest("mine", 2));
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_FALSE(Job("mine").contains("spec"));
}

TEST_F(ManifestFolderTest, WrongFileLeavesTheJobAsItWas) {
  Write("a.yaml", Manifest("a", 1));
  ASSERT_TRUE(folder_.Sync().ok());
  Write("a.yaml", "kind: Nonsense");
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_EQ(Job("a")["spec"]["workers"]["replicas"], 1);
}

TEST_F(ManifestFolderTest, RenamedFileKeepsItsJob) {
  Write("a.yaml", Manifest("a", 1));
  ASSERT_TRUE(folder_.Sync().ok());
  const std::string uid = kube::Uid(Job("a"));
  std::filesystem::rename(path_ / "a.yaml", path_ / "b.yaml");
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_EQ(kube::Uid(Job("a")), uid);
  std::filesystem::remove(path_ / "b.yaml");
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_TRUE(Job("a").is_null());
}

TEST_F(ManifestFolderTest, UnreadableFileKeepsItsJob) {
  Write("a.yaml", Manifest("a", 1));
  ASSERT_TRUE(folder_.Sync().ok());
  std::filesystem::remove(path_ / "a.yaml");
  std::filesystem::create_directory(path_ / "a.yaml");  // unreadable also for root
  ASSERT_TRUE(folder_.Sync().ok());
  EXPECT_FALSE(Job("a").is_null());
}

TEST_F(ManifestFolderTest, FilesAfterOneWhoseJobMustWaitAreFollowedAllTheSame) {
  Write("a.yaml", Manifest("a", 1));
  ASSERT_TRUE(folder_.Sync().ok());
  kube::Json held = Job("a");
  held["metadata"]["finalizers"] = {"example.com/hold"};
  ASSERT_TRUE(store_->Update(kube::kTrainingJob, held).ok());
  ASSERT_TRUE(store_->Delete(kube::kTrainingJob, {"default", "a"}, {}).ok());
  Write("a.yaml", Manifest("a", 2));
  Write("b.yaml", Manifest("b", 1));
  EXPECT_TRUE(absl::IsUnavailable(folder_.Sync()));
  EXPECT_FALSE(Job("b").is_null());
}

TEST_F(ManifestFolderTest, MissingFolderIsAnErrorThatNamesIt) {
  ManifestFolder missing(path_ / "none", *store_);
  EXPECT_NE(Message(missing.Sync()).find("none"), std::string::npos);
}

}  // namespace
}  // namespace ringmaster::local

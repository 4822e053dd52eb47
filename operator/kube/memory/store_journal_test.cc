// The memory store on disk: what a reopened store knows.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "common/file.h"
#include "common/temporary_folder.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

class StoreJournalTest : public ::testing::Test {
 protected:
  StoreJournalTest() {
    options_.journal_path = (folder_.path() / "store.journal").string();
    options_.seed = 1;
  }

  void Reopen() {
    store_.reset();
    auto opened = MemoryStore::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  static Json Map(const std::string& name) { return NewObject(kConfigMap, {"ns", name}); }

  // All objects of the kinds used here, and the store's revision.
  std::string Everything() {
    std::string text;
    for (const ResourceType& type : {kConfigMap, kTrainingJob, kPod}) {
      const ObjectList list = *store_->List(type, "", {});
      for (const ObjectPtr& item : list.items) text += item->dump() + "\n";
      text += list.resource_version + "\n";
    }
    return text;
  }

  int Lines() {
    const std::string content = *ReadFile(options_.journal_path);
    return static_cast<int>(std::count(content.begin(), content.end(), '\n'));
  }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  StoreOptions options_;
  std::unique_ptr<MemoryStore> store_;
};

TEST_F(StoreJournalTest, AReopenedStoreHoldsTheSameAndCountsOn) {
  Reopen();
  const Json job = *store_->Create(kTrainingJob, NewObject(kTrainingJob, {"ns", "job"}));
  ASSERT_TRUE(
      store_->PatchStatus(kTrainingJob, {"ns", "job"}, {{"round", 3}}, ResourceVersion(job)).ok());
  ASSERT_TRUE(store_->Create(kConfigMap, Map("a")).ok());
  ASSERT_TRUE(store_->Create(kConfigMap, Map("b")).ok());
  ASSERT_TRUE(store_->Delete(kConfigMap, {"ns", "b"}, {}).ok());
  const std::string before = Everything();
  Reopen();
  EXPECT_EQ(Everything(), before);
  const Json next = *store_->Create(kConfigMap, Map("c"));
  EXPECT_EQ(ResourceVersion(next), "6");
}

TEST_F(StoreJournalTest, PositionsFromBeforeTheReopeningExpireAndTheNewOneHolds) {
  Reopen();
  const std::string old = store_->List(kConfigMap, "", {})->resource_version;
  ASSERT_TRUE(store_->Create(kConfigMap, Map("a")).ok());
  Reopen();
  EXPECT_EQ(store_->Watch(kConfigMap, "", {.resource_version = old}).status().code(),
            absl::StatusCode::kOutOfRange);
  auto stream = *store_->Watch(
      kConfigMap, "", {.resource_version = store_->List(kConfigMap, "", {})->resource_version});
  ASSERT_TRUE(store_->Create(kConfigMap, Map("b")).ok());
  EXPECT_EQ(Name(*(*stream->Next(std::chrono::seconds(10))).object), "b");
}

TEST_F(StoreJournalTest, CompactingKeepsEverythingAndShrinksTheFile) {
  Reopen();
  ASSERT_TRUE(store_->Create(kConfigMap, Map("a")).ok());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        store_->Patch(kConfigMap, {"ns", "a"}, {{"data", {{"n", std::to_string(i)}}}}).ok());
  }
  ASSERT_TRUE(store_->Create(kConfigMap, Map("gone")).ok());
  ASSERT_TRUE(store_->Delete(kConfigMap, {"ns", "gone"}, {}).ok());
  const std::string before = Everything();
  ASSERT_TRUE(store_->Compact().ok());
  EXPECT_EQ(Lines(), 3);
  Reopen();
  EXPECT_EQ(Everything(), before);
}

TEST_F(StoreJournalTest, TheJournalIsCompactedByItselfWhenMostOfItIsPast) {
  options_.compact_after = 20;
  Reopen();
  ASSERT_TRUE(store_->Create(kConfigMap, Map("a")).ok());
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(
        store_->Patch(kConfigMap, {"ns", "a"}, {{"data", {{"n", std::to_string(i)}}}}).ok());
  }
  EXPECT_LE(Lines(), 21);
  const std::string before = Everything();
  Reopen();
  EXPECT_EQ(Everything(), before);
}

TEST_F(StoreJournalTest, ATornLastWriteIsDroppedNamedAndForgotten) {
  Reopen();
  ASSERT_TRUE(store_->Create(kConfigMap, Map("a")).ok());
  const std::string before = Everything();
  ASSERT_TRUE(store_->Create(kConfigMap, Map("b")).ok());
  store_.reset();
  std::filesystem::resize_file(options_.journal_path,
                               std::filesystem::file_size(options_.journal_path) - 5);
  Reopen();
  EXPECT_NE(store_->torn().find("store.journal:3: dropped the last line"), std::string::npos)
      << store_->torn();
  EXPECT_EQ(Everything(), before);
  Reopen();
  EXPECT_EQ(store_->torn(), "");
}

TEST_F(StoreJournalTest, ADeletionThatACrashInterruptedIsFinishedOnOpening) {
  Reopen();
  const Json job = *store_->Create(kTrainingJob, NewObject(kTrainingJob, {"ns", "job"}));
  Json child = Map("child");
  AddOwnerReference(child, OwnerReference(kTrainingJob, job));
  ASSERT_TRUE(store_->Create(kConfigMap, child).ok());
  ASSERT_TRUE(store_->Delete(kTrainingJob, {"ns", "job"}, {}).ok());
  store_.reset();
  // Take back the collection of the child, the last line.
  const std::string content = *ReadFile(options_.journal_path);
  std::filesystem::resize_file(options_.journal_path, content.rfind('\n', content.size() - 2) + 1);
  Reopen();
  EXPECT_EQ(store_->Get(kConfigMap, {"ns", "child"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreJournalTest, ADamagedJournalIsRefused) {
  Reopen();
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(store_->Create(kConfigMap, Map(name)).ok());
  store_.reset();
  std::string content = *ReadFile(options_.journal_path);
  content[content.size() / 2] ^= 4;
  std::ofstream(options_.journal_path, std::ios::trunc) << content;
  EXPECT_EQ(MemoryStore::Open(options_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StoreJournalTest, ASecondStoreOnTheSameJournalIsRefused) {
  Reopen();
  EXPECT_EQ(MemoryStore::Open(options_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreJournalTest, EveryAcknowledgedWriteSurvivesAKill) {
  int acknowledged[2];
  ASSERT_EQ(::pipe(acknowledged), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = *MemoryStore::Open(options_);
    for (int i = 0;; ++i) {
      if (!store->Create(kConfigMap, Map(fmt::format("c{}", i))).ok()) ::_exit(1);
      if (::write(acknowledged[1], "x", 1) != 1) ::_exit(2);
    }
  }
  ::close(acknowledged[1]);
  char byte = 0;
  int seen = 0;
  while (seen < 100 && ::read(acknowledged[0], &byte, 1) == 1) ++seen;
  ::kill(child, SIGKILL);
  while (::read(acknowledged[0], &byte, 1) == 1) ++seen;
  ::close(acknowledged[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  Reopen();
  EXPECT_GE(static_cast<int>(store_->List(kConfigMap, "", {})->items.size()), seen);
  EXPECT_TRUE(store_->Get(kConfigMap, {"ns", fmt::format("c{}", seen - 1)}).ok());
}

}  // namespace
}  // namespace ringmaster::kube::memory

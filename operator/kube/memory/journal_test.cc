#include "operator/kube/memory/journal.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"

namespace ringmaster::kube::memory {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() { path_ = (folder_.path() / "store.journal").string(); }

  absl::StatusOr<std::unique_ptr<Journal>> Open(Durability durability = Durability::kProcess) {
    replayed_.clear();
    const auto replay = [this](const Json& write) {
      replayed_.push_back(write["n"]);
      return absl::OkStatus();
    };
    return Journal::Open(path_, durability, replay, &torn_);
  }

  void Append(Journal& journal, int n) { ASSERT_TRUE(journal.Append({{"n", n}}).ok()); }
  void WriteLines(int count) {
    auto journal = *Open();
    for (int n = 1; n <= count; ++n) Append(*journal, n);
  }
  std::string Content() { return *ReadFile(path_); }
  void SetContent(const std::string& content) { std::ofstream(path_, std::ios::trunc) << content; }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  std::string path_;
  std::string torn_;
  std::vector<int> replayed_;
};

TEST_F(JournalTest, ReplaysWhatWasAppendedInOrder) {
  WriteLines(3);
  ASSERT_TRUE(Open(Durability::kMachine).ok());
  EXPECT_EQ(replayed_, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(torn_, "");
}

TEST_F(JournalTest, ALineIsJsonWithTheCrc32OfItsWrite) {
  {
    auto journal = *Open();
    ASSERT_TRUE(journal->Append("123456789").ok());
  }
  const Json line = Json::parse(Content());
  EXPECT_EQ(line["write"], "123456789");
  EXPECT_EQ(line["crc32"], "83593021");  // gzip's crc32 of "123456789" with its quotes
}

TEST_F(JournalTest, ATornLastLineIsDroppedAndNamedWhereverItIsCut) {
  WriteLines(3);
  const std::string whole = Content();
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last + 1; size < whole.size(); ++size) {
    SetContent(whole.substr(0, size));
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << size << ": " << journal.status();
    EXPECT_EQ(replayed_, (std::vector<int>{1, 2})) << size;
    EXPECT_NE(torn_.find("store.journal:3: dropped the last line"), std::string::npos) << torn_;
    Append(**journal, 4);
    journal->reset();
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(replayed_, (std::vector<int>{1, 2, 4})) << size;
  }
}

TEST_F(JournalTest, AFlippedBitInTheLastLineDropsIt) {
  WriteLines(2);
  std::string content = Content();
  content[content.size() - 3] ^= 1;
  SetContent(content);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(replayed_, (std::vector<int>{1}));
  EXPECT_NE(torn_.find("checksum"), std::string::npos) << torn_;
}

TEST_F(JournalTest, DamageBeforeTheLastLineIsRefusedWithItsLine) {
  WriteLines(3);
  std::string content = Content();
  content[content.find('\n') - 2] ^= 1;
  SetContent(content);
  const auto journal = Open();
  EXPECT_EQ(journal.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(Message(journal.status()).find("store.journal:1: "), std::string::npos)
      << journal.status();
  EXPECT_EQ(Content(), content);
}

TEST_F(JournalTest, AnyFlippedBitBeforeTheLastLineIsRefused) {
  WriteLines(3);
  const std::string whole = Content();
  // The newline before the last line, too, without which that one seems to be a part of another.
  const std::size_t end = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t at = 0; at < end; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string content = whole;
      content[at] = static_cast<char>(content[at] ^ (1 << bit));
      SetContent(content);
      EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss)
          << "byte " << at << ", bit " << bit << ": " << content;
    }
  }
}

TEST_F(JournalTest, RewriteReplacesTheContentAndAppendingGoesOn) {
  {
    auto journal = *Open();
    for (int n = 1; n <= 5; ++n) Append(*journal, n);
    ASSERT_TRUE(journal->Rewrite({{{"n", 50}}}).ok());
    EXPECT_EQ(journal->lines(), 1);
    Append(*journal, 6);
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(replayed_, (std::vector<int>{50, 6}));
}

TEST_F(JournalTest, AFailedRewriteLeavesTheOldContent) {
  auto journal = *Open();
  Append(*journal, 1);
  std::filesystem::create_directory(path_ + ".tmp");  // the temporary file cannot be made
  EXPECT_FALSE(journal->Rewrite({{{"n", 9}}}).ok());
  Append(*journal, 2);
  journal.reset();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(replayed_, (std::vector<int>{1, 2}));
}

TEST_F(JournalTest, ASecondOpenerIsRefused) {
  const auto journal = Open();
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
}

// A file size limit stands for a full disk: the write stops in the middle of the line.
TEST_F(JournalTest, AWriteThatDoesNotFitLeavesNoTrace) {
  auto journal = *Open();
  Append(*journal, 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = Content().size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const absl::Status status = journal->Append({{"n", 2}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_FALSE(status.ok());
  Append(*journal, 3);
  journal.reset();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(replayed_, (std::vector<int>{1, 3}));
  EXPECT_EQ(torn_, "");
}

}  // namespace
}  // namespace ringmaster::kube::memory

#include "operator/rendezvous/round_key.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/temporary_folder.h"

namespace ringmaster::rendezvous {
namespace {

const kube::ObjectKey kJob{"default", "digits"};

reconcile::Announcement Round(std::int64_t number, std::vector<std::string> uids) {
  reconcile::Announcement round{.round = number};
  for (const std::string& uid : uids)
    round.members.push_back({static_cast<int>(round.members.size()), "pod", uid, "a:1"});
  return round;
}

TEST(RoundKeyTest, IsTheSameForTheSameRound) {
  EXPECT_EQ(RoundKey("s", kJob, Round(1, {"a", "b"})), RoundKey("s", kJob, Round(1, {"a", "b"})));
  EXPECT_EQ(RoundKey("s", kJob, Round(1, {"a"})).size(), 32u);
}

TEST(RoundKeyTest, DoesNotDependOnTheCheckpointsThatAreOffered) {
  reconcile::Announcement later = Round(1, {"a"});
  later.checkpoints.push_back({.step = 10});
  EXPECT_EQ(RoundKey("s", kJob, later), RoundKey("s", kJob, Round(1, {"a"})));
}

TEST(RoundKeyTest, DiffersByEverythingThatMakesTheRound) {
  const std::string key = RoundKey("s", kJob, Round(1, {"a", "b"}));
  EXPECT_NE(key, RoundKey("t", kJob, Round(1, {"a", "b"})));
  EXPECT_NE(key, RoundKey("s", {"default", "other"}, Round(1, {"a", "b"})));
  EXPECT_NE(key, RoundKey("s", kJob, Round(2, {"a", "b"})));
  EXPECT_NE(key, RoundKey("s", kJob, Round(1, {"b", "a"})));
  EXPECT_NE(key, RoundKey("s", kJob, Round(1, {"ab"})));
}

class SecretTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::string path_ = folder_.path() / "rendezvous.key";
};

TEST_F(SecretTest, IsMadeOnceAndReadAgain) {
  const auto made = LoadOrCreateSecret(path_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->size(), 32u);
  EXPECT_EQ(*LoadOrCreateSecret(path_), *made);
}

TEST_F(SecretTest, IsForItsOwnersEyesAlone) {
  ASSERT_TRUE(LoadOrCreateSecret(path_).ok());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(SecretTest, RefusesAFileThatHoldsSomethingElse) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string_view("short")).ok());
  EXPECT_EQ(LoadOrCreateSecret(path_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SecretTest, NamesTheFolderThatIsMissing) {
  const auto secret = LoadOrCreateSecret(folder_.path() / "absent/rendezvous.key");
  EXPECT_EQ(secret.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ringmaster::rendezvous

// How the launcher proves who it is, finds the leader, and gets into other images.
#include <filesystem>

#include <gmock/gmock.h>

#include "common/contract.h"
#include "common/file.h"
#include "common/temporary_folder.h"
#include "tests/integration/launcher_fixture.h"

namespace ringmaster::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Optional;

// Knows one token of w0 and remembers what it was asked.
class OneToken : public kube::TokenReviewer {
 public:
  absl::StatusOr<kube::PodIdentity> ReviewToken(std::string_view token,
                                                std::string_view audience) override {
    std::lock_guard lock(mutex_);
    asked_ = std::string(token);
    changed_.notify_all();
    if (token != "good" || audience != contract::kTokenAudience)
      return absl::UnauthenticatedError("the token is not known");
    return kube::PodIdentity{{"default", "w0"}, "u0"};
  }
  bool WasAsked(const std::string& token) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return asked_ == token; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string asked_;
};

class LauncherIdentityTest : public LauncherFixture {
 protected:
  ~LauncherIdentityTest() override { StopServer(); }  // before the reviewer that it asks

  void StartSecureServer() {
    reviewer_ = &tokens_;
    certificate_ = *SelfSignedCertificate(contract::kRendezvousServerName, SystemClock().Now(),
                                          std::chrono::hours(1));
    StopServer();
    StartServer();
    environment_[contract::kEnvRendezvousCa] = certificate_->certificate_pem;
    environment_[contract::kEnvTokenFile] = TokenFile();
  }
  std::string TokenFile() const { return folder_ / "token"; }
  void WriteToken(const std::string& token) {
    ASSERT_TRUE(WriteFileAtomically(TokenFile(), token).ok());
  }

  const TemporaryFolder temporary_ = TemporaryFolder::Make().value();
  const std::filesystem::path folder_ = temporary_.path();
  OneToken tokens_;
};

TEST_F(LauncherIdentityTest, ShowsTheTokenThatTheKubeletHasRenewed) {
  StartSecureServer();
  WriteToken("expired");
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(tokens_.WasAsked("expired"));
  EXPECT_FALSE(View().connected);
  WriteToken("good");
  EXPECT_TRUE(EventuallyConnected()) << "without being started anew";
}

TEST_F(LauncherIdentityTest, GoesToTheLeaderThatAStandbyNames) {
  rendezvous::Server::Options options{
      .address = "127.0.0.1:0", .secret = "secret", .stand_by = true};
  rendezvous::ObjectPodVerifier knows_no_pod([](const auto&) { return nullptr; });
  auto standby =
      rendezvous::Server::Start(options, SystemClock(), knows_no_pod, [](const auto&) {});
  ASSERT_TRUE(standby.ok()) << standby.status();
  (*standby)->StandBy(environment_[contract::kEnvRendezvous]);
  environment_[contract::kEnvRendezvous] = (*standby)->address();
  const auto launcher = LaunchTrainer("");
  EXPECT_TRUE(EventuallyConnected());
}

TEST_F(LauncherIdentityTest, InstallsItselfWithEverythingThatItRunsFrom) {
  const std::string folder = folder_ / "launcher";
  Process installer({LauncherPath(), "--install", folder}, {});
  ASSERT_THAT(installer.Wait(), Optional(0));
  Process help(
      {folder + "/ld.so", "--library-path", folder, folder + "/ringmaster-launcher", "--help"}, {});
  EXPECT_THAT(help.Line(), Optional(HasSubstr("usage: ringmaster-launcher")));
  EXPECT_THAT(help.Wait(), Optional(0));
  // Nothing is taken from the machine's own folders.
  Process list(
      {folder + "/ld.so", "--library-path", folder, "--list", folder + "/ringmaster-launcher"}, {});
  std::vector<std::string> libraries;
  while (const auto line = list.Line()) {
    if (line->find("=>") != std::string::npos) libraries.push_back(*line);
  }
  EXPECT_THAT(libraries, Contains(HasSubstr("libgrpc")));
  EXPECT_THAT(libraries, Each(HasSubstr("=> " + folder + "/")));
}

}  // namespace
}  // namespace ringmaster::testing

// Credentials that change while a program runs.
#include "operator/kube/rest/credentials.h"

#include <filesystem>
#include <latch>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/temporary_folder.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::HasSubstr;
using ::testing::Not;

class CredentialsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / name, content).ok());
  }

  // A plugin that runs this shell script, and notes each run in the file "runs".
  std::shared_ptr<CredentialSource> Plugin(const std::string& script,
                                           std::chrono::milliseconds timeout = 20s) {
    ExecPlugin plugin;
    plugin.command = "/bin/sh";
    plugin.args = {"-c", "echo run >> " + Path("runs") + "; " + script};
    plugin.env = {{"PRINT",
                   "{\"apiVersion\": \"client.authentication.k8s.io/v1\", "
                   "\"kind\": \"ExecCredential\", \"status\": "}};
    plugin.timeout = timeout;
    return ExecCredentials(plugin, clock_);
  }
  int Runs() const {
    const auto runs = ReadFile(Path("runs"));
    return runs.ok() ? static_cast<int>(std::count(runs->begin(), runs->end(), '\n')) : 0;
  }

  const TemporaryFolder temporary_ = TemporaryFolder::Make().value();
  const std::filesystem::path folder_ = temporary_.path();
  FakeClock clock_;
};

TEST_F(CredentialsTest, ATokenFileIsReadAgainWhenItIsOld) {
  Write("token", "one\n");
  const auto source = FileCredentials({.token_file = Path("token")}, clock_);
  EXPECT_EQ(source->Get()->bearer_token, "one");
  Write("token", "two\n");
  EXPECT_EQ(source->Get()->bearer_token, "one");
  clock_.Advance(61s);
  EXPECT_EQ(source->Get()->bearer_token, "two");
}

TEST_F(CredentialsTest, AnAuthorityIsReadAgainWithTheToken) {
  Write("token", "one");
  Write("ca.crt", "CA 1");
  const auto source =
      FileCredentials({.token_file = Path("token"), .authority_file = Path("ca.crt")}, clock_);
  EXPECT_EQ(source->Get()->authority_pem, "CA 1");
  Write("ca.crt", "CA 1 and CA 2");
  clock_.Advance(61s);
  EXPECT_EQ(source->Get()->authority_pem, "CA 1 and CA 2");
}

TEST_F(CredentialsTest, ARefusedTokenIsReadAgainAtOnce) {
  Write("token", "one");
  const auto source = FileCredentials({.token_file = Path("token")}, clock_);
  const Credentials one = *source->Get();
  Write("token", "two");
  source->Refused(one);
  EXPECT_EQ(source->Get()->bearer_token, "two");
}

TEST_F(CredentialsTest, AFileThatIsGoneForAMomentLeavesTheLastTokenInForce) {
  Write("token", "one");
  const auto source = FileCredentials({.token_file = Path("token")}, clock_);
  ASSERT_TRUE(source->Get().ok());
  std::filesystem::remove(folder_ / "token");
  clock_.Advance(61s);
  EXPECT_EQ(source->Get()->bearer_token, "one");
  const auto never = FileCredentials({.token_file = Path("none")}, clock_)->Get();
  EXPECT_EQ(never.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(never.status().ToString(), HasSubstr(Path("none")));
}

TEST_F(CredentialsTest, APluginsAnswerIsUsedUntilItExpires) {
  const auto source =
      Plugin("echo \"$PRINT {\\\"token\\\": \\\"t$(wc -l < " + Path("runs") +
             ")\\\", \\\"expirationTimestamp\\\": \\\"2026-01-01T00:10:00Z\\\"}}\"");
  const auto first = source->Get();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->bearer_token, "t1");
  clock_.Advance(500s);
  EXPECT_EQ(source->Get()->bearer_token, "t1");
  EXPECT_EQ(Runs(), 1);
  clock_.Advance(98s);  // two seconds before it expires
  EXPECT_EQ(source->Get()->bearer_token, "t2");
  EXPECT_EQ(Runs(), 2);
}

TEST_F(CredentialsTest, ARefusedAnswerIsAskedForAgain) {
  const auto source = Plugin("echo \"$PRINT {\\\"token\\\": \\\"t\\\"}}\"");
  const Credentials answer = *source->Get();
  clock_.Advance(std::chrono::hours(100));
  ASSERT_TRUE(source->Get().ok());
  EXPECT_EQ(Runs(), 1);
  source->Refused({.bearer_token = "another"});
  ASSERT_TRUE(source->Get().ok());
  EXPECT_EQ(Runs(), 1);
  source->Refused(answer);
  ASSERT_TRUE(source->Get().ok());
  EXPECT_EQ(Runs(), 2);
}

TEST_F(CredentialsTest, APluginGetsWhatTheProtocolSays) {
  const auto source = Plugin("printf %s \"$KUBERNETES_EXEC_INFO\" > " + Path("info") +
                             "; echo \"$PRINT {\\\"clientCertificateData\\\": \\\"C\\\", "
                             "\\\"clientKeyData\\\": \\\"K\\\"}}\"");
  const auto credentials = source->Get();
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->client_certificate_pem, "C");
  EXPECT_EQ(credentials->client_key_pem, "K");
  const auto info = nlohmann::json::parse(*ReadFile(Path("info")));
  EXPECT_EQ(info["kind"], "ExecCredential");
  EXPECT_EQ(info["apiVersion"], "client.authentication.k8s.io/v1");
  EXPECT_EQ(info["spec"]["interactive"], false);
}

TEST_F(CredentialsTest, APluginThatFailsIsNamedWithItsLastWords) {
  const auto status =
      Plugin("echo first >&2; echo sign in again >&2; echo secret; exit 3")->Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(status.ToString(), HasSubstr("/bin/sh: it ended with exit code 3: sign in again"));
  EXPECT_THAT(status.ToString(), Not(HasSubstr("secret")));
}

TEST_F(CredentialsTest, APluginThatPrintsNonsenseIsRefusedWithoutRepeatingIt) {
  for (const char* script :
       {"echo secret", "echo '{}'", "true", "echo \"$PRINT {\\\"secret\\\": 1}}\"",
        "echo \"$PRINT {\\\"clientKeyData\\\": \\\"secret\\\"}}\"",
        "echo \"$PRINT {\\\"token\\\": \\\"secret\\\", \\\"expirationTimestamp\\\": \\\"x\\\"}}\"",
        "echo '{\"kind\": \"ExecCredential\", \"apiVersion\": "
        "\"client.authentication.k8s.io/v1beta1\", \"status\": {\"token\": \"secret\"}}'"}) {
    const auto status = Plugin(script)->Get().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << script;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret"))) << script;
  }
}

TEST_F(CredentialsTest, APluginThatHangsIsKilledWithItsChildren) {
  const auto begin = std::chrono::steady_clock::now();
  const auto status = Plugin("sleep 60 & sleep 60", 200ms)->Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(status.ToString(), HasSubstr("did not end in time"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST_F(CredentialsTest, APluginThatFailsIsNotRunAgainForEachWhoWaitedForIt) {
  const auto source = Plugin("while ! [ -e " + Path("go") +
                             " ]; do sleep 0.05; done; sleep 1; echo no session >&2; exit 3");
  constexpr int kCallers = 4;
  std::latch asking(kCallers);
  std::vector<absl::Status> answers(kCallers);
  std::vector<std::thread> callers;
  for (absl::Status& answer : answers) {
    callers.emplace_back([&] {
      asking.count_down();
      answer = source->Get().status();
    });
  }
  asking.wait();
  Write("go", "");  // the plugin runs on until all of them surely wait for it
  for (std::thread& caller : callers) caller.join();
  for (const absl::Status& answer : answers) {
    EXPECT_THAT(answer.ToString(), HasSubstr("exit code 3: no session"));
  }
  EXPECT_EQ(Runs(), 1);
  EXPECT_FALSE(source->Get().ok());
  EXPECT_EQ(Runs(), 2) << "who asks after the failure may have mended it";
}

TEST_F(CredentialsTest, APluginThatIsNotThereSaysHowToGetIt) {
  ExecPlugin plugin{.command = "no-such-plugin", .install_hint = "apt install it"};
  const auto status = ExecCredentials(plugin)->Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(status.ToString(), HasSubstr("no-such-plugin: not found; apt install it"));
}

}  // namespace
}  // namespace ringmaster::kube::rest

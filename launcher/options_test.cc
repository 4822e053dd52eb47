#include "launcher/options.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"

namespace ringmaster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    Set(contract::kEnvNamespace, "default");
    Set(contract::kEnvJob, "digits");
    Set(contract::kEnvPodName, "digits-0-0");
    Set(contract::kEnvPodUid, "u0");
    Set(contract::kEnvPodIp, "127.0.0.2");
    Set(contract::kEnvRendezvous, "127.0.0.1:7471,127.0.0.1:7481");
  }
  ~OptionsTest() override {
    for (const char* name : set_) ::unsetenv(name);
  }
  void Set(const char* name, const char* value) {
    ::setenv(name, value, 1);
    set_.push_back(name);
  }
  static std::string ErrorOf(const std::vector<std::string>& arguments) {
    return std::string(ReadOptions(arguments).status().message());
  }
  std::vector<const char*> set_;
};

TEST_F(OptionsTest, RunsTheTrainerBesideItselfWhenThereIsNoCommand) {
  const auto options = ReadOptions({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->mode, LaunchMode::kNative);
  EXPECT_THAT(options->command[0], HasSubstr("/ringmaster-train"));
  EXPECT_EQ(options->grace, std::chrono::seconds(25));
  EXPECT_THAT(options->rendezvous, ElementsAre("127.0.0.1:7471", "127.0.0.1:7481"));
}

TEST_F(OptionsTest, RunsTheTrainerThatIsNamed) {
  Set(contract::kEnvTrainerBinary, "/opt/train");
  EXPECT_THAT(ReadOptions({})->command, ElementsAre("/opt/train"));
  Set(contract::kEnvTrainerBinary, "build/train");
  EXPECT_THAT(ReadOptions({})->command, ElementsAre("/workspace/build/train"));
}

TEST_F(OptionsTest, RunsACommandAsItIsUnlessToldOtherwise) {
  const auto options = ReadOptions({"--", "python3", "train.py", "--lr", "0.1"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->mode, LaunchMode::kExec);
  EXPECT_THAT(options->command, ElementsAre("python3", "train.py", "--lr", "0.1"));
  Set(contract::kEnvLaunchMode, "Torch");
  EXPECT_EQ(ReadOptions({"python3"})->mode, LaunchMode::kTorch);
}

TEST_F(OptionsTest, NamesTheVariableThatIsMissing) {
  ::unsetenv(contract::kEnvPodUid);
  EXPECT_THAT(ErrorOf({}), HasSubstr("RINGMASTER_POD_UID is not set"));
}

TEST_F(OptionsTest, NamesTheVariableThatIsWrong) {
  Set(contract::kEnvLaunchMode, "Slurm");
  EXPECT_THAT(ErrorOf({"x"}), HasSubstr("RINGMASTER_LAUNCH_MODE: 'Slurm' is none of"));
  Set(contract::kEnvLaunchMode, "Exec");
  EXPECT_THAT(ErrorOf({}), HasSubstr("no command"));
  Set(contract::kEnvCpus, "many");
  EXPECT_THAT(ErrorOf({"x"}), HasSubstr("RINGMASTER_CPUS: 'many'"));
}

TEST_F(OptionsTest, RefusesALifelineThatIsNotOpen) {
  Set(contract::kEnvLifelineFd, "987");
  EXPECT_THAT(ErrorOf({}), HasSubstr("RINGMASTER_LIFELINE_FD: 987 is not open"));
}

}  // namespace
}  // namespace ringmaster::launcher

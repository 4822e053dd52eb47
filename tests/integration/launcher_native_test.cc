// The launcher with a native trainer: what it relays, and who dies when.
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/contract.h"
#include "common/file.h"
#include "common/temporary_folder.h"
#include "tests/integration/launcher_fixture.h"

namespace ringmaster::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    read.Reset(fds[0]);
    write.Reset(fds[1]);
  }
  UniqueFd read, write;
};

constexpr std::chrono::seconds kPatience{30};

class LauncherNativeTest : public LauncherFixture {};

TEST_F(LauncherNativeTest, RelaysRoundsDownAndEventsUp) {
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(EventuallyReady());
  EXPECT_EQ(View().ready->model, "scripted");
  EXPECT_TRUE(View().native);
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("round 1 rank 0"));
  EXPECT_TRUE(Eventually([](const reconcile::WorkerView& view) {
    return view.round == 1 && view.progress && view.progress->step == 10;
  }));
  Send(reconcile::CheckpointNowCommand{});
  EXPECT_TRUE(launcher->AwaitLine("checkpoint"));
  Announce(2);  // in the same process
  EXPECT_TRUE(launcher->AwaitLine("round 2 rank 0"));
}

TEST_F(LauncherNativeTest, EndsWithZeroWhenTheTrainerHasFinishedAndTheOperatorKnows) {
  const auto launcher = LaunchTrainer("finish");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(0));
  ASSERT_TRUE(View().finished.has_value());
  EXPECT_EQ(View().finished->weights_sha256, "5f1c");
  ASSERT_TRUE(View().exited.has_value());
  EXPECT_EQ(View().exited->exit_code, 0);
}

TEST_F(LauncherNativeTest, PassesOnTheTrainersExitCodeWithItsLastLines) {
  const auto launcher = LaunchTrainer("fail");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(66));
  ASSERT_TRUE(View().exited.has_value());
  EXPECT_EQ(View().exited->exit_code, 66);
  EXPECT_THAT(View().exited->message, EndsWith("line 29\nline 30"));
  EXPECT_THAT(View().exited->message, Not(HasSubstr("line 10\n")));
}

TEST_F(LauncherNativeTest, AsksForACheckpointOnSigtermAndLeaves) {
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(launcher->AwaitLine("round 1 rank 0"));
  launcher->Signal(SIGTERM);
  EXPECT_TRUE(launcher->AwaitLine("drain"));
  EXPECT_THAT(launcher->Wait(), Optional(0));
  EXPECT_TRUE(View().drain_requested.has_value());
  EXPECT_THAT(View().drained_step, Optional(10));
}

TEST_F(LauncherNativeTest, StopsAndThenKillsATrainerThatDoesNotLeave) {
  environment_[contract::kEnvGraceSeconds] = "6";  // the word to stop comes in its middle
  const auto launcher = LaunchTrainer("deaf");
  ASSERT_TRUE(EventuallyReady());
  launcher->Signal(SIGTERM);
  EXPECT_TRUE(launcher->AwaitLine("drain"));
  EXPECT_TRUE(launcher->AwaitLine("stop"));
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGKILL));
  EXPECT_EQ(View().exited->exit_code, 128 + SIGKILL);
}

TEST_F(LauncherNativeTest, DrainsWhenTheOperatorSaysSo) {
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(EventuallyReady());
  Send(reconcile::DrainCommand{"suspended"});
  EXPECT_THAT(launcher->Wait(), Optional(0));
  EXPECT_FALSE(View().drain_requested.has_value());
}

TEST_F(LauncherNativeTest, GoesOnWithoutTheOperatorAndTellsTheNextOne) {
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(
      Eventually([](const reconcile::WorkerView& view) { return view.progress.has_value(); }));
  ASSERT_TRUE(launcher->AwaitLine("round 1 rank 0"));
  StopServer();
  StartServer();
  EXPECT_TRUE(Eventually([](const reconcile::WorkerView& view) {
    return view.connected && view.round == 1 && view.ready && view.progress &&
           view.progress->step == 10;
  }));
  Announce(1);  // it is in this one already, so the next line is the next round's
  Announce(2);
  EXPECT_THAT(launcher->Line(), Optional(std::string("round 2 rank 0")));
}

TEST_F(LauncherNativeTest, TellsTheEndToAnOperatorThatComesBack) {
  const auto launcher = LaunchTrainer("");
  const auto ready = launcher->Line();
  ASSERT_TRUE(ready && ready->starts_with("ready "));
  ASSERT_TRUE(EventuallyReady());
  StopServer();
  ASSERT_EQ(::kill(std::stoi(ready->substr(6)), SIGKILL), 0);
  StartServer();
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGKILL));
  ASSERT_TRUE(View().exited.has_value());
  EXPECT_EQ(View().exited->exit_code, 128 + SIGKILL);
}

TEST_F(LauncherNativeTest, LeavesOnlyWhenWhatItSaidIsStored) {
  stores_ = false;
  const auto launcher = LaunchTrainer("finish");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.leaving; }));
  EXPECT_EQ(View().finished->weights_sha256, "5f1c");
  server_->link().LetGo(kJob, "u0");
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

TEST_F(LauncherNativeTest, SaysItsLastAgainWhereTheOperatorDiesBeforeItHasStoredIt) {
  stores_ = false;
  const auto launcher = LaunchTrainer("finish");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.leaving; }));
  StopServer();
  StartServer();
  ASSERT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.leaving; }));
  EXPECT_EQ(View().finished->weights_sha256, "5f1c");
  EXPECT_EQ(View().exited->exit_code, 0);
  server_->link().LetGo(kJob, "u0");
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

TEST_F(LauncherNativeTest, LeavesUnheardWhenItsTimeToGoIsOver) {
  stores_ = false;
  environment_[contract::kEnvGraceSeconds] = "1";
  const auto launcher = LaunchTrainer("finish");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.leaving; }));
  launcher->Signal(SIGTERM);
  EXPECT_THAT(launcher->Wait(), Optional(0));
  EXPECT_TRUE(Eventually([](const reconcile::WorkerView& view) { return !view.leaving; }));
}

TEST_F(LauncherNativeTest, LeavesUnheardAtOnceWhenItIsAskedTwice) {
  stores_ = false;
  const auto launcher = LaunchTrainer("finish");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.leaving; }));
  launcher->Signal(SIGTERM);
  launcher->Signal(SIGINT);  // not merged with the first
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

TEST_F(LauncherNativeTest, LeavesWhenThePodIsNotTheJobsAnyMore) {
  pod_uid_ = "u1";
  const auto launcher = LaunchTrainer("");
  EXPECT_THAT(launcher->Wait(), Optional(75));
}

TEST_F(LauncherNativeTest, IsHeardThoughItWasRefusedBeforeItCouldSayThatItLeaves) {
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  ASSERT_TRUE(launcher->AwaitLine("round 1 rank 0"));
  StopServer();
  // The next operator knows that the pod is being deleted, and is slow to say so.
  std::promise<void> asked;
  std::promise<void> answer;
  verdict_ = [&, first = true, go = answer.get_future().share()](bool leaving) mutable {
    if (leaving) return absl::OkStatus();
    if (std::exchange(first, false)) {
      asked.set_value();
      EXPECT_EQ(go.wait_for(kPatience), std::future_status::ready);
    }
    return absl::FailedPreconditionError("pod w0 is terminating");
  };
  StartServer();
  ASSERT_EQ(asked.get_future().wait_for(kPatience), std::future_status::ready);
  launcher->Signal(SIGTERM);
  EXPECT_TRUE(launcher->AwaitLine("drain"));
  answer.set_value();
  EXPECT_THAT(launcher->Wait(), Optional(0));
  EXPECT_THAT(View().drained_step, Optional(10));
}

TEST_F(LauncherNativeTest, LeavesNobodyBehindWhenItsTrainerEnds) {
  Pipe tree;
  const auto launcher = LaunchTrainer("spawn finish", {tree.write.get()});
  tree.write.Reset();
  ASSERT_TRUE(EventuallyReady());
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(0));
  EXPECT_TRUE(AwaitEndOfFile(tree.read.get()));
}

TEST_F(LauncherNativeTest, KillsItsWholeTreeWhenTheLifelineEnds) {
  Pipe tree, lifeline;
  environment_["RINGMASTER_LIFELINE_FD"] = std::to_string(lifeline.read.get());
  const auto launcher = LaunchTrainer("spawn", {tree.write.get(), lifeline.read.get()});
  tree.write.Reset();
  ASSERT_TRUE(EventuallyReady());
  lifeline.write.Reset();
  EXPECT_THAT(launcher->Wait(), Optional(75));
  EXPECT_TRUE(AwaitEndOfFile(tree.read.get()));
}

TEST_F(LauncherNativeTest, TakesItsTrainerAlongWhenItIsKilled) {
  Pipe tree;
  const auto launcher = LaunchTrainer("", {tree.write.get()});
  tree.write.Reset();
  ASSERT_TRUE(EventuallyReady());
  launcher->Signal(SIGKILL);
  EXPECT_TRUE(AwaitEndOfFile(tree.read.get()));
  EXPECT_TRUE(Eventually([](const reconcile::WorkerView& view) { return !view.connected; }));
}

TEST_F(LauncherNativeTest, NamesATrainerThatIsNotThere) {
  environment_["RINGMASTER_TRAINER_BINARY"] = "/nonexistent/ringmaster-train";
  const auto launcher = Launch({});
  EXPECT_THAT(launcher->Wait(), Optional(65));
  ASSERT_TRUE(View().exited.has_value());
  EXPECT_THAT(View().exited->message, HasSubstr("/nonexistent/ringmaster-train"));
}

TEST_F(LauncherNativeTest, ThreadsOfItsTrainerSoonSleepWhereTheyWaitForOneAnother) {
  const TemporaryFolder folder = TemporaryFolder::Make().value();
  const std::filesystem::path trainer = folder.path() / "trainer";
  const std::filesystem::path seen = folder.path() / "seen";
  ASSERT_TRUE(
      WriteFileAtomically(trainer, fmt::format("#!/bin/sh\nenv > {}\n", seen.string())).ok());
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  environment_[contract::kEnvTrainerBinary] = trainer;
  for (const char* name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) ::unsetenv(name);
  EXPECT_TRUE(Launch({})->Wait().has_value());
  EXPECT_THAT(ReadFile(seen).value(), HasSubstr("\nGOMP_SPINCOUNT=3000\n"));
  EXPECT_TRUE(Launch({}, {{"OMP_WAIT_POLICY", "active"}})->Wait().has_value());
  EXPECT_THAT(ReadFile(seen).value(), Not(HasSubstr("GOMP_SPINCOUNT")));
}

TEST_F(LauncherNativeTest, SaysWhichVariableIsMissing) {
  environment_["RINGMASTER_JOB"] = "";
  EXPECT_THAT(LaunchTrainer("")->Wait(), Optional(64));
}

}  // namespace
}  // namespace ringmaster::testing

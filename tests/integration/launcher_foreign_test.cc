// The launcher with programs that are not ours: here shell scripts.
#include <csignal>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/clock.h"
#include "common/contract.h"
#include "launcher/health.h"
#include "tests/integration/launcher_fixture.h"
#include "tests/support/http.h"

namespace ringmaster::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;

class LauncherForeignTest : public LauncherFixture {
 protected:
  std::unique_ptr<Process> LaunchScript(const std::string& script) {
    auto launcher = Launch({"sh", "-c", script});
    EXPECT_TRUE(EventuallyConnected());
    return launcher;
  }
};

TEST_F(LauncherForeignTest, WaitsForTheFirstRoundAndPassesOnTheExitCode) {
  const auto launcher = LaunchScript("echo here; exit 7");
  EXPECT_FALSE(View().native);
  EXPECT_EQ(View().ready->address, "127.0.0.2:29500");
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("here"));
  EXPECT_THAT(launcher->Wait(), Optional(7));
  EXPECT_EQ(View().exited->exit_code, 7);
  EXPECT_EQ(View().exited->message, "here");
}

TEST_F(LauncherForeignTest, ItsPagesSayWhatItWaitsForAndWhenItIsReady) {
  const int pid = ::getpid();
  const std::string own = fmt::format("127.{}.{}.9", 64 + pid / 250 % 64, 1 + pid % 250);
  environment_[contract::kEnvPodIp] = own;
  const auto launcher = LaunchScript("while :; do sleep 100; done");
  const auto page = [&](const std::string& path) {
    return HttpGet(launcher::kHealthPort, path, own);
  };
  EXPECT_THAT(page("/readyz"), AllOf(HasSubstr(" 503 "), HasSubstr("not in a round yet")));
  EXPECT_THAT(page("/healthz"), HasSubstr(" 200 OK"));
  Announce(1);
  EXPECT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.round == 1; }));
  const SteadyTime end = SystemClock().SteadyNow() + std::chrono::seconds(30);
  std::string ready = page("/readyz");
  while (ready.find(" 200 OK") == std::string::npos && SystemClock().SteadyNow() < end)
    ready = page("/readyz");
  EXPECT_THAT(ready, HasSubstr(" 200 OK"));
}

TEST_F(LauncherForeignTest, ReportsDeathBySignalAsAShellDoes) {
  const auto launcher = LaunchScript("kill -SEGV $$");
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGSEGV));
  EXPECT_EQ(View().exited->exit_code, 128 + SIGSEGV);
}

TEST_F(LauncherForeignTest, StartsTheProgramAnewOnEachRound) {
  const auto launcher = LaunchScript("echo round $RINGMASTER_ROUND; while :; do sleep 100; done");
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("round 1"));
  Announce(2);
  EXPECT_TRUE(launcher->AwaitLine("round 2"));
  EXPECT_TRUE(Eventually([](const reconcile::WorkerView& view) { return view.round == 2; }));
  EXPECT_FALSE(View().exited.has_value());
}

TEST_F(LauncherForeignTest, KillsAProgramThatWillNotEndForTheNextRound) {
  environment_[contract::kEnvGraceSeconds] = "1";
  const auto launcher =
      LaunchScript("trap '' TERM; echo round $RINGMASTER_ROUND; while :; do sleep 100; done");
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("round 1"));
  Announce(2);
  EXPECT_TRUE(launcher->AwaitLine("round 2"));
}

TEST_F(LauncherForeignTest, GivesTorchItsEnvironment) {
  environment_["RINGMASTER_LAUNCH_MODE"] = "Torch";
  const auto launcher =
      LaunchScript("echo $MASTER_ADDR:$MASTER_PORT $RANK/$WORLD_SIZE $LOCAL_RANK");
  Announce(1);
  EXPECT_THAT(launcher->Line(), Optional(std::string("127.0.0.2:29500 0/1 0")));
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

TEST_F(LauncherForeignTest, TellsPeersTheAddressOfTheNetworkThatIsChosen) {
  environment_[contract::kEnvPeerInterface] = "no-such-net,lo";
  const auto launcher = LaunchScript("echo here");
  EXPECT_EQ(View().ready->address, "127.0.0.1:29500");
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("here"));
}

TEST_F(LauncherForeignTest, SaysWhichNetworksThereAreWhereTheChosenOneIsNot) {
  environment_[contract::kEnvPeerInterface] = "no-such-net";
  const auto launcher = Launch({"sh", "-c", "echo never"});
  EXPECT_THAT(launcher->Wait(), Optional(static_cast<int>(contract::kExitBadConfig)));
  EXPECT_TRUE(View().departing) << "no round is to be made with it";
  EXPECT_THAT(View().exited->message,
              AllOf(HasSubstr("RINGMASTER_PEER_INTERFACE: there is no interface no-such-net"),
                    HasSubstr("lo 127.0.0.1")));
}

TEST_F(LauncherForeignTest, GivesMpiItsHostFile) {
  environment_["RINGMASTER_LAUNCH_MODE"] = "MPI";
  const auto launcher =
      LaunchScript("cat $OMPI_MCA_orte_default_hostfile; echo $OMPI_COMM_WORLD_SIZE");
  Announce(1);
  EXPECT_THAT(launcher->Line(), Optional(std::string("127.0.0.2 slots=1")));
  EXPECT_THAT(launcher->Line(), Optional(std::string("1")));
}

TEST_F(LauncherForeignTest, GivesSigtermOnAndThenTheGracePeriod) {
  const auto launcher =
      LaunchScript("trap 'echo saving; exit 3' TERM; echo up; while :; do sleep 0.1; done");
  Announce(1);
  ASSERT_TRUE(launcher->AwaitLine("up"));
  launcher->Signal(SIGTERM);
  EXPECT_TRUE(launcher->AwaitLine("saving"));
  EXPECT_THAT(launcher->Wait(), Optional(3));
  EXPECT_TRUE(View().drain_requested.has_value());
}

TEST_F(LauncherForeignTest, KillsAProgramThatIgnoresSigterm) {
  environment_[contract::kEnvGraceSeconds] = "1";
  const auto launcher = LaunchScript("trap '' TERM; echo up; while :; do sleep 100; done");
  Announce(1);
  ASSERT_TRUE(launcher->AwaitLine("up"));
  launcher->Signal(SIGTERM);
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGKILL));
}

TEST_F(LauncherForeignTest, LeavesOnSigtermBeforeTheFirstRound) {
  const auto launcher = LaunchScript("echo never");
  launcher->Signal(SIGTERM);
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGTERM));
}

TEST_F(LauncherForeignTest, PassesOtherSignalsOn) {
  const auto launcher = LaunchScript(
      "trap 'echo usr1' USR1; trap 'echo hup; exit 0' HUP; echo up; while :; do sleep 0.1; done");
  Announce(1);
  ASSERT_TRUE(launcher->AwaitLine("up"));
  launcher->Signal(SIGUSR1);
  EXPECT_TRUE(launcher->AwaitLine("usr1"));
  launcher->Signal(SIGHUP);
  EXPECT_TRUE(launcher->AwaitLine("hup"));
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

// The orphan is its grandparent's to reap: until the launcher has, its folder in /proc stays and
// the script goes round.
TEST_F(LauncherForeignTest, ReapsOrphansOfItsProgram) {
  const auto launcher = LaunchScript(
      "orphan=$(sh -c 'sh -c \"exit 0\" >/dev/null 2>&1 & echo $!');"
      "while [ -d /proc/$orphan ]; do :; done; echo reaped");
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("reaped"));
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

// The kernel gives process 1 of a container no signal that it does not handle, and every orphan.
TEST_F(LauncherForeignTest, ReapsAndHandsOnSignalsAsProcessOneOfAContainer) {
  const std::string container = "unshare --pid --fork --mount-proc --kill-child";
  if (std::system((container + " true 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "this user may not make a process namespace";
  before_launcher_ = {"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"};
  const auto launcher = LaunchScript(
      "echo under $PPID; orphan=$(sh -c 'sh -c \"exit 0\" >/dev/null 2>&1 & echo $!');"
      "while [ -d /proc/$orphan ]; do :; done; echo reaped;"
      "trap 'echo saving; exit 3' TERM; kill -TERM 1; while :; do sleep 0.1; done");
  Announce(1);
  EXPECT_TRUE(launcher->AwaitLine("under 1"));
  EXPECT_TRUE(launcher->AwaitLine("reaped"));
  EXPECT_TRUE(launcher->AwaitLine("saving"));
  EXPECT_THAT(launcher->Wait(), Optional(3));
}

// The control group's file is the test's own: it counts what the kernel would have killed.
TEST_F(LauncherForeignTest, TellsThatItsContainerHasReachedItsMemoryLimit) {
  const std::string events = "/sys/fs/cgroup/memory.events";
  const std::string own_group = "mount -t tmpfs none /sys/fs/cgroup && echo oom_kill 0 > " + events;
  const std::string container = "unshare --pid --fork --mount --mount-proc --kill-child";
  if (std::system(fmt::format("{} sh -c '{}' 2>/dev/null", container, own_group).c_str()) != 0)
    GTEST_SKIP() << "this user may not make a mount namespace";
  before_launcher_ = {"unshare", "--pid",        "--fork",
                      "--mount", "--mount-proc", "--kill-child",
                      "sh",      "-c",           own_group + " && exec \"$@\"",
                      "sh"};
  const auto launcher = LaunchScript("echo oom_kill 1 > " + events + "; kill -KILL $$");
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGKILL));
  EXPECT_TRUE(View().exited->out_of_memory);
}

TEST_F(LauncherForeignTest, KeepsTheLastLinesOfBothOutputs) {
  const auto launcher = LaunchScript(
      "i=1; while [ $i -le 50 ]; do echo line $i; i=$((i+1)); done; echo Traceback >&2; exit 1");
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(1));
  EXPECT_THAT(View().exited->message, EndsWith("line 50\nTraceback"));
  EXPECT_EQ(View().exited->message.find("line 31\n"), std::string::npos);
  EXPECT_THAT(View().exited->message, HasSubstr("line 32\n"));
}

TEST_F(LauncherForeignTest, BindsItsProgramToTheProcessorsThatAreNamed) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  environment_[contract::kEnvCpus] = std::to_string(last);
  const auto launcher = LaunchScript("sed -n 's/^Cpus_allowed_list:\\s*/on /p' /proc/self/status");
  Announce(1);
  EXPECT_THAT(launcher->Line(), Optional("on " + std::to_string(last)));
  EXPECT_THAT(launcher->Wait(), Optional(0));
}

TEST_F(LauncherForeignTest, NamesAProgramThatIsNotThere) {
  const auto launcher = Launch({"no-such-program"});
  ASSERT_TRUE(EventuallyConnected());
  Announce(1);
  EXPECT_THAT(launcher->Wait(), Optional(127));
  EXPECT_THAT(View().exited->message, HasSubstr("no-such-program: not found"));
}

TEST_F(LauncherForeignTest, StopsAtTheOperatorsWord) {
  const auto launcher = LaunchScript("echo up; while :; do sleep 0.1; done");
  Announce(1);
  ASSERT_TRUE(launcher->AwaitLine("up"));
  Send(reconcile::StopCommand{"the job has failed"});
  EXPECT_THAT(launcher->Wait(), Optional(128 + SIGTERM));
}

}  // namespace
}  // namespace ringmaster::testing

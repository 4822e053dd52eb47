#include "launcher/spawn.h"

#include <csignal>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/cpu_list.h"

namespace ringmaster::launcher {
namespace {

// All that the program writes, until it has closed its output.
std::string OutputOf(const Spawned& spawned) {
  std::string text;
  char buffer[4096];
  pollfd entry{spawned.output.get(), POLLIN, 0};
  while (::poll(&entry, 1, 30000) > 0) {
    const ssize_t got = ::read(spawned.output.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, got);
  }
  return text;
}

int ExitCode(const Spawned& spawned) {
  int status = 0;
  EXPECT_EQ(::waitpid(spawned.pid, &status, 0), spawned.pid);
  return ExitCodeOf(status);
}

absl::StatusOr<Spawned> Script(const std::string& script,
                               std::map<std::string, std::string> environment = {}) {
  return Spawn({.command = {"sh", "-c", script}, .environment = std::move(environment)});
}

TEST(SpawnTest, GivesTheProgramsOutputAndExitCode) {
  const auto spawned = Script("echo out; echo err >&2; exit 7");
  ASSERT_TRUE(spawned.ok()) << spawned.status();
  EXPECT_EQ(OutputOf(*spawned), "out\nerr\n");
  EXPECT_EQ(ExitCode(*spawned), 7);
}

TEST(SpawnTest, ReportsDeathBySignalAsAShellDoes) {
  const auto spawned = Script("kill -USR1 $$");
  EXPECT_EQ(ExitCode(*spawned), 128 + SIGUSR1);
}

TEST(SpawnTest, AddsToTheEnvironmentAndReplaces) {
  ::setenv("SPAWN_TEST_OLD", "old", 1);
  ::setenv("SPAWN_TEST_KEPT", "kept", 1);
  const auto spawned = Script("echo $SPAWN_TEST_OLD $SPAWN_TEST_KEPT $SPAWN_TEST_NEW",
                              {{"SPAWN_TEST_OLD", "replaced"}, {"SPAWN_TEST_NEW", "new"}});
  EXPECT_EQ(OutputOf(*spawned), "replaced kept new\n");
  ExitCode(*spawned);
}

TEST(SpawnTest, RunsTheProgramInAGroupOfItsOwnWithItsSignalsUnblocked) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const auto spawned = Script("grep SigBlk /proc/self/status");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(::getpgid(spawned->pid), spawned->pid);
  EXPECT_EQ(OutputOf(*spawned), "SigBlk:\t0000000000000000\n");
  ExitCode(*spawned);
}

TEST(SpawnTest, BindsTheProgramToItsProcessors) {
  const int last = AllowedCpus().back();
  const auto spawned =
      Spawn({.command = {"sh", "-c", "grep Cpus_allowed_list /proc/self/status"}, .cpus = {last}});
  EXPECT_EQ(OutputOf(*spawned), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  ExitCode(*spawned);
}

TEST(SpawnTest, NamesAProgramThatIsNotThere) {
  EXPECT_EQ(Spawn({.command = {"no-such-program"}}).status().code(), absl::StatusCode::kNotFound);
  const auto absolute = Spawn({.command = {"/nonexistent/program"}});
  EXPECT_EQ(absolute.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(absolute.status().message()).find("/nonexistent/program"),
            std::string::npos);
}

TEST(SpawnTest, NamesAProgramThatCannotBeExecuted) {
  EXPECT_EQ(Spawn({.command = {"/etc/passwd"}}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(SpawnTest, KillsDescendantsThatLeftTheirGroup) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A daemon in a session of its own, whose parent has ended.
  const auto spawned = Script("setsid sh -c 'echo started; exec sleep 1000' & wait");
  char byte;
  pollfd entry{spawned->output.get(), POLLIN, 0};
  ASSERT_GT(::poll(&entry, 1, 30000), 0);
  ASSERT_EQ(::read(spawned->output.get(), &byte, 1), 1);
  KillDescendants();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, dead or alive
  OutputOf(*spawned);                              // ends: nobody holds the pipe
}

}  // namespace
}  // namespace ringmaster::launcher

// ringmaster-train as the launcher sees it: a process with an environment, a channel, an exit code.
#include "runtime/train/program.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/contract.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/checkpoint/testing.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/testing/trainer_process.h"

namespace ringmaster::train {
namespace {

namespace v1 = rendezvous::v1;
using ::testing::AllOf;
using testing::DigitsJob;
using ::testing::HasSubstr;
using testing::TrainerProcess;

TEST(ProgramTest, NamesEveryProblemOfTheConfiguration) {
  const auto config = ParseWorkerConfig(R"({"trainer": {"stepz": 1, "model": {}}})");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(config.status()),
              AllOf(HasSubstr("RINGMASTER_TRAINER_CONFIG"), HasSubstr("trainer.stepz"),
                    HasSubstr("trainer.data"), HasSubstr("trainer.optimizer")));
  EXPECT_THAT(Message(ParseWorkerConfig("{").status()), HasSubstr("not JSON"));
}

TEST(ProgramTest, PutsBracketsAroundAnIpv6Address) {
  EXPECT_EQ(HostPort("10.0.0.7", 7473), "10.0.0.7:7473");
  EXPECT_EQ(HostPort("fd00::7", 7473), "[fd00::7]:7473");
  EXPECT_EQ(HostPort("[fd00::7]", 7473), "[fd00::7]:7473");
}

TEST(ProgramTest, ReadsHowLongAPeerMayBeSilent) {
  constexpr char kName[] = "RINGMASTER_PEER_TIMEOUT_SECONDS";
  EXPECT_EQ(ReadOptions()->operation_timeout, std::chrono::seconds(60));
  ::setenv(kName, "7", 1);
  EXPECT_EQ(ReadOptions()->operation_timeout, std::chrono::seconds(7));
  EXPECT_EQ(ReadOptions()->connect_timeout, std::chrono::seconds(60));
  ::setenv(kName, "600", 1);
  EXPECT_EQ(ReadOptions()->connect_timeout, std::chrono::seconds(600));
  for (const char* bad : {"0", "-1", "86401", "soon"}) {
    ::setenv(kName, bad, 1);
    EXPECT_THAT(Message(ReadOptions().status()), AllOf(HasSubstr(kName), HasSubstr(bad)));
  }
  ::unsetenv(kName);
}

TEST(ProgramTest, EndsAtOnceWithPartsThatAreRegisteredTwice) {
  Parts parts;
  for (int i = 0; i < 2; ++i)
    parts.AddNetwork("mine", [](nn::ModelBuilder&, Settings&, nn::ValueId x) { return x; });
  const Ending ending = RunTrainer(parts);
  EXPECT_EQ(ending.exit_code, contract::kExitBadConfig);
  EXPECT_EQ(ending.message, "network \"mine\" is registered twice");
}

TEST(ProgramTest, TellsAPersonWhoStartsItHowItIsStarted) {
  const Ending ending = RunTrainer({});
  EXPECT_EQ(ending.exit_code, contract::kExitBadConfig);
  EXPECT_THAT(ending.message, HasSubstr("a launcher starts it; run a manifest that names it in "
                                        "spec.trainer.program"));
}

class TrainerProcessTest : public ::testing::Test {
 protected:
  std::unique_ptr<TrainerProcess> Start(int worker = 0) {
    const auto pid = static_cast<unsigned>(::getpid());
    return std::make_unique<TrainerProcess>(std::map<std::string, std::string>{
        {contract::kEnvTrainerConfig, training::v1alpha1::ToJson(job_.config).dump()},
        {contract::kEnvWorkspace, job_.workspace().string()},
        {contract::kEnvJob, "digits"},
        {contract::kEnvPodIp,
         fmt::format("127.{}.{}.{}", 64 + pid / 250 % 128, 1 + pid % 250, 101 + worker)}});
  }

  static v1::ToTrainer Round(int64_t number, int rank, const std::vector<std::string>& addresses) {
    v1::ToTrainer message;
    v1::Round& round = *message.mutable_command()->mutable_round();
    round.set_number(number);
    round.set_rank(rank);
    round.set_shards(8);
    round.set_key("a key of thirty-two bytes, or so");
    for (int member = 0; member < static_cast<int>(addresses.size()); ++member) {
      round.add_members()->set_rank(member);
      round.mutable_members(member)->set_pod_uid(fmt::format("pod-{}", member));
      round.mutable_members(member)->set_address(addresses[static_cast<size_t>(member)]);
    }
    return message;
  }

  DigitsJob job_;
};

TEST_F(TrainerProcessTest, TrainsAloneAndExitsWithZero) {
  const auto worker = Start();
  const v1::Event ready = worker->WaitFor(v1::Event::kReady);
  EXPECT_THAT(ready.ready().model(), HasSubstr("lenet-bn"));
  worker->Send(Round(1, 0, {ready.ready().address()}));
  worker->WaitFor(v1::Event::kShardDurable);
  v1::ToTrainer committed;
  committed.mutable_command()->mutable_checkpoint_committed()->mutable_checkpoint()->set_step(13);
  worker->Send(committed);
  const v1::Event finished = worker->WaitFor(v1::Event::kFinished);
  EXPECT_EQ(finished.round(), 1);
  EXPECT_EQ(finished.finished().steps(), 13);
  EXPECT_EQ(worker->WaitForExit(), 0);
  EXPECT_THAT(worker->Log(), HasSubstr(finished.finished().weights_sha256()));
}

TEST_F(TrainerProcessTest, ExitsWithBadDataNamingFileAndLineBeforeItIsReady) {
  std::ofstream(job_.data(), std::ios::app) << "1,2,three\n";
  const auto worker = Start();
  EXPECT_EQ(worker->WaitForExit(), contract::kExitBadData);
  EXPECT_THAT(worker->Log(), HasSubstr("digits.csv:159: "));
  EXPECT_THROW(worker->WaitFor(v1::Event::kReady), std::runtime_error);
}

TEST_F(TrainerProcessTest, ExitsWithBadConfig) {
  job_.config.trainer.batch.size = -1;
  const auto worker = Start();
  EXPECT_EQ(worker->WaitForExit(), contract::kExitBadConfig);
  EXPECT_THAT(worker->Log(), HasSubstr("trainer.batch.size"));
}

// A sanitizer's shadow memory alone is more than any limit that means something.
#ifndef __SANITIZE_ADDRESS__
TEST_F(TrainerProcessTest, SaysThatMemoryIsOutInsteadOfAborting) {
  training::v1alpha1::Layer flatten, wide, narrow;
  flatten.flatten.emplace();
  wide.linear.emplace();
  wide.linear->features = 1'500'000;  // 400 MB of weights, and as much of momentum
  narrow.linear.emplace();
  narrow.linear->features = 4;
  job_.config.trainer.model.zoo.reset();
  job_.config.trainer.model.sequential.emplace();
  job_.config.trainer.model.sequential->layers = {flatten, wide, narrow};
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit limit{rlim_t{600'000'000}, before.rlim_max};
  ::setrlimit(RLIMIT_AS, &limit);
  const auto worker = Start();
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(worker->WaitForExit(), contract::kExitNoResource);
  EXPECT_THAT(worker->Log(), HasSubstr("out of memory"));
}
#endif

TEST_F(TrainerProcessTest, LeavesWhenToldToThoughItsDiskHangs) {
  const auto worker = Start();
  const v1::Event ready = worker->WaitFor(v1::Event::kReady);
  const std::filesystem::path hanging =
      job_.checkpoints() /
      checkpoint::TemporaryName({.step = 13, .round = 1, .world_size = 1}, 0, "default/digits");
  std::filesystem::create_directories(job_.checkpoints());
  const checkpoint::HangingFile disk(hanging);
  worker->Send(Round(1, 0, {ready.ready().address()}));
  while (worker->WaitFor(v1::Event::kProgress).progress().step() < 13) {
  }
  v1::ToTrainer stop;
  stop.mutable_command()->mutable_stop()->set_reason("the job was deleted");
  worker->Send(stop);
  EXPECT_EQ(worker->WaitForExit(), contract::kExitPeerLost);
  EXPECT_TRUE(std::filesystem::remove(hanging)) << "nobody has written it";
}

TEST_F(TrainerProcessTest, LeavesWhenItsLauncherIsGone) {
  const auto worker = Start();
  worker->WaitFor(v1::Event::kReady);
  worker->HangUp();
  EXPECT_EQ(worker->WaitForExit(), contract::kExitPeerLost);
}

TEST_F(TrainerProcessTest, IgnoresSigtermBecauseTheLauncherDecides) {
  const auto worker = Start();
  const v1::Event ready = worker->WaitFor(v1::Event::kReady);
  worker->Signal(SIGTERM);
  v1::ToTrainer drain;
  drain.mutable_drain()->set_reason("SIGTERM");
  worker->Send(drain);
  worker->WaitFor(v1::Event::kDrained);
  EXPECT_EQ(worker->WaitForExit(), 0);
}

TEST_F(TrainerProcessTest, NamesAPeerThatWasKilledAndGoesOnWithoutIt) {
  job_.config.trainer.steps = 100000;
  const auto survivor = Start(0);
  const auto victim = Start(1);
  const std::string mine = survivor->WaitFor(v1::Event::kReady).ready().address();
  const std::string other = victim->WaitFor(v1::Event::kReady).ready().address();
  survivor->Send(Round(1, 0, {mine, other}));
  victim->Send(Round(1, 1, {mine, other}));
  while (victim->WaitFor(v1::Event::kProgress).progress().step() == 0) {
  }
  victim->Signal(SIGKILL);
  EXPECT_EQ(victim->WaitForExit(), 128 + SIGKILL);
  const v1::Event lost = survivor->WaitFor(v1::Event::kPeerLost);
  EXPECT_EQ(lost.round(), 1);
  EXPECT_EQ(lost.peer_lost().rank(), 1);
  EXPECT_TRUE(survivor->Runs());
  survivor->Send(Round(2, 0, {mine}));
  const v1::Event progress = survivor->WaitFor(v1::Event::kProgress);
  EXPECT_EQ(progress.round(), 2);
  EXPECT_EQ(progress.progress().step(), 0) << "there was no checkpoint";
}

}  // namespace
}  // namespace ringmaster::train

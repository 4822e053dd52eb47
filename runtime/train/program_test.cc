// ringmaster-train as the launcher sees it: a process with an environment, a channel, an exit code.
#include "runtime/train/program.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/host_port.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/checkpoint/testing.h"
#include "runtime/collectives/testing/packet_network.h"
#include "runtime/train/testing/digits_job.h"
#include "runtime/train/testing/trainer_process.h"
#include "tests/support/skip.h"

namespace ringmaster::train {
namespace {

namespace v1 = rendezvous::v1;
using collectives::testing::PacketNetwork;
using ::testing::AllOf;
using testing::DigitsJob;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::StartsWith;
using testing::TrainerProcess;

constexpr char kNeedsNamespaces[] = "needs root and /dev/net/tun, to make hosts of namespaces";

TEST(ProgramTest, NamesEveryProblemOfTheConfiguration) {
  const auto config = ParseWorkerConfig(R"({"trainer": {"stepz": 1, "model": {}}})");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(config.status()),
              AllOf(HasSubstr("RINGMASTER_TRAINER_CONFIG"), HasSubstr("trainer.stepz"),
                    HasSubstr("trainer.data"), HasSubstr("trainer.optimizer")));
  EXPECT_THAT(Message(ParseWorkerConfig("{").status()), HasSubstr("not JSON"));
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

TEST(ProgramTest, ListensAtThePodsAddressUnlessANetworkIsChosen) {
  ::setenv(contract::kEnvPodIp, "127.77.0.2", 1);
  EXPECT_EQ(ReadOptions()->listen, "127.77.0.2:7473");
  ::setenv(contract::kEnvPeerInterface, "lo", 1);
  EXPECT_EQ(ReadOptions()->listen, "127.0.0.1:7473");
  ::setenv(contract::kEnvPeerInterface, "no-such-net", 1);
  EXPECT_THAT(Message(ReadOptions().status()),
              HasSubstr("RINGMASTER_PEER_INTERFACE: there is no interface no-such-net"));
  ::unsetenv(contract::kEnvPeerInterface);
  ::unsetenv(contract::kEnvPodIp);
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
  // No other test process has it.
  static std::string PodIp(int worker) {
    const auto pid = static_cast<unsigned>(::getpid());
    return fmt::format("127.{}.{}.{}", 64 + pid / 250 % 128, 1 + pid % 250, 101 + worker);
  }

  std::unique_ptr<TrainerProcess> Start(int worker = 0) {
    std::map<std::string, std::string> environment = environment_;
    environment[contract::kEnvTrainerConfig] = training::v1alpha1::ToJson(job_.config).dump();
    environment[contract::kEnvWorkspace] = job_.workspace().string();
    environment[contract::kEnvJob] = "digits";
    environment[contract::kEnvPodIp] = PodIp(worker);
    return std::make_unique<TrainerProcess>(std::move(environment));
  }

  static std::string AddressOf(TrainerProcess& worker) {
    return worker.WaitFor(v1::Event::kReady).ready().address();
  }

  static v1::ToTrainer Committed(int64_t step) {
    v1::ToTrainer message;
    message.mutable_command()->mutable_checkpoint_committed()->mutable_checkpoint()->set_step(step);
    return message;
  }

  // One round of these, in the order of their ranks, to its end; all must come to the same weights.
  static void ExpectTheyTrain(const std::vector<TrainerProcess*>& workers,
                              const std::vector<std::string>& addresses) {
    for (size_t rank = 0; rank < workers.size(); ++rank)
      workers[rank]->Send(Round(1, static_cast<int>(rank), addresses));
    std::set<std::string> weights;
    for (TrainerProcess* worker : workers) worker->WaitFor(v1::Event::kShardDurable);
    for (TrainerProcess* worker : workers) worker->Send(Committed(13));
    for (TrainerProcess* worker : workers)
      weights.insert(worker->WaitFor(v1::Event::kFinished).finished().weights_sha256());
    EXPECT_EQ(weights.size(), 1U);
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
  std::map<std::string, std::string> environment_;  // beside what every worker gets
};

TEST_F(TrainerProcessTest, TrainsAloneAndExitsWithZero) {
  const auto worker = Start();
  const v1::Event ready = worker->WaitFor(v1::Event::kReady);
  EXPECT_THAT(ready.ready().model(), HasSubstr("lenet-bn"));
  worker->Send(Round(1, 0, {ready.ready().address()}));
  worker->WaitFor(v1::Event::kShardDurable);
  worker->Send(Committed(13));
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

// Without these oneDNN's tables, and OpenSSL's blocks for each record of TLS, come from the heap in
// each step, which no other test of programs sees.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void ExpectASymbol(const std::string& pattern) {
  const std::string command = "nm -D " + env::GetString("RINGMASTER_BIN_DIR") +
                              "/ringmaster-train | grep -q ' " + pattern + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(TrainerProgramTest, IsLinkedWithTheOperatorNewThatKeepsACallsMemory) {
  ExpectASymbol("T _Znwm$");
}

TEST(TrainerProgramTest, IsLinkedWithTheAllocatorThatKeepsOpenSslsSmallBlocks) {
  ExpectASymbol("U CRYPTO_set_mem_functions");
}
#endif

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

// As two workers of one node under hostNetwork.
TEST_F(TrainerProcessTest, TakesAnyPortWhereItsOwnIsTakenAndSaysWhy) {
  const auto first = Start(0);
  const std::string usual = AddressOf(*first);
  EXPECT_EQ(usual, JoinHostPort(PodIp(0), contract::kWorkerPort));
  const auto second = Start(0);
  const std::string other = AddressOf(*second);
  EXPECT_THAT(other, AllOf(StartsWith(PodIp(0) + ":"), Ne(usual)));
  EXPECT_THAT(second->Log(), AllOf(HasSubstr("listen at " + usual + ": Address already in use"),
                                   HasSubstr("no metrics are served")));
  ExpectTheyTrain({first.get(), second.get()}, {usual, other});
}

TEST_F(TrainerProcessTest, ListensOnTheNetworkThatIsChosenAndTrainsOverIt) {
  environment_[contract::kEnvPeerInterface] = "127.0.0.0/8";
  const auto first = Start(0);
  const auto second = Start(1);
  const std::vector<std::string> addresses{AddressOf(*first), AddressOf(*second)};
  EXPECT_THAT(addresses, Each(StartsWith("127.0.0.1:")));
  ExpectTheyTrain({first.get(), second.get()}, addresses);
}

TEST_F(TrainerProcessTest, EndsBeforeItIsReadyWhereTheChosenNetworkIsNotThere) {
  environment_[contract::kEnvPeerInterface] = "no-such-net";
  const auto worker = Start();
  EXPECT_EQ(worker->WaitForExit(), contract::kExitBadConfig);
  EXPECT_THAT(worker->Log(), AllOf(HasSubstr("there is no interface no-such-net; this worker has "),
                                   HasSubstr("lo 127.0.0.1")));
}

// Two machines on each of which the pods' own addresses lead nowhere but to itself.
TEST_F(TrainerProcessTest, TrainsOverTheOneNetworkOfTwoThatItsPeersAreOn) {
  const bool is_possible = PacketNetwork::IsPossible();
  ringmaster::testing::SkipUnless(is_possible, kNeedsNamespaces);
  if (!is_possible) return;
  PacketNetwork network(2, /*seed=*/1);
  environment_[contract::kEnvPeerInterface] = "tun0";
  std::vector<std::unique_ptr<TrainerProcess>> workers(2);
  for (int host = 0; host < 2; ++host) {
    std::thread([&] {
      network.Enter(host);
      workers[static_cast<size_t>(host)] = Start(host);
    }).join();
  }
  const std::vector<std::string> addresses{AddressOf(*workers[0]), AddressOf(*workers[1])};
  EXPECT_THAT(addresses,
              ElementsAre(JoinHostPort(PacketNetwork::Address(0), contract::kWorkerPort),
                          JoinHostPort(PacketNetwork::Address(1), contract::kWorkerPort)));
  ExpectTheyTrain({workers[0].get(), workers[1].get()}, addresses);
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

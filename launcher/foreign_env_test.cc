#include "launcher/foreign_env.h"

#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

rendezvous::v1::Round ThirdRound() {
  rendezvous::v1::Round round;
  round.set_number(3);
  round.set_rank(1);
  for (const char* address : {"10.0.0.1:29500", "10.0.0.2:29500", "[fd00::3]:29500"}) {
    rendezvous::v1::Member& member = *round.add_members();
    member.set_rank(round.members_size() - 1);
    member.set_address(address);
  }
  return round;
}

TEST(ForeignEnvTest, TellsEveryProgramItsPlace) {
  const auto environment = ForeignEnvironment(LaunchMode::kExec, "digits", ThirdRound(), "");
  EXPECT_EQ(environment.at("RINGMASTER_ROUND"), "3");
  EXPECT_EQ(environment.at("RINGMASTER_RANK"), "1");
  EXPECT_EQ(environment.at("RINGMASTER_WORLD_SIZE"), "3");
  EXPECT_EQ(environment.at("RINGMASTER_MEMBERS"), "10.0.0.1,10.0.0.2,fd00::3");
  EXPECT_FALSE(environment.contains("MASTER_ADDR"));
  EXPECT_FALSE(environment.contains("OMPI_COMM_WORLD_RANK"));
}

TEST(ForeignEnvTest, GivesTorchWhatTorchrunWould) {
  const auto environment = ForeignEnvironment(LaunchMode::kTorch, "digits", ThirdRound(), "");
  EXPECT_EQ(environment.at("MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(environment.at("MASTER_PORT"), "29500");
  EXPECT_EQ(environment.at("RANK"), "1");
  EXPECT_EQ(environment.at("WORLD_SIZE"), "3");
  EXPECT_EQ(environment.at("LOCAL_RANK"), "0");
  EXPECT_EQ(environment.at("LOCAL_WORLD_SIZE"), "1");
  EXPECT_EQ(environment.at("GROUP_RANK"), "1");
  EXPECT_EQ(environment.at("TORCHELASTIC_RESTART_COUNT"), "2");
}

TEST(ForeignEnvTest, GivesMpiWhatMpirunWould) {
  const auto environment = ForeignEnvironment(LaunchMode::kMpi, "digits", ThirdRound(), "/x/hosts");
  EXPECT_EQ(environment.at("OMPI_COMM_WORLD_RANK"), "1");
  EXPECT_EQ(environment.at("OMPI_COMM_WORLD_SIZE"), "3");
  EXPECT_EQ(environment.at("OMPI_COMM_WORLD_LOCAL_RANK"), "0");
  EXPECT_EQ(environment.at("OMPI_MCA_orte_default_hostfile"), "/x/hosts");
  EXPECT_EQ(Hostfile(ThirdRound()), "10.0.0.1 slots=1\n10.0.0.2 slots=1\nfd00::3 slots=1\n");
}

}  // namespace
}  // namespace ringmaster::launcher

#include "runtime/collectives/nccl/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster::collectives::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankFacts Rank(const std::string& machine, std::vector<std::string> devices) {
  return {"", "2.30.7", machine, false, std::move(devices)};
}

std::vector<int> Ordinals(const std::vector<RankFacts>& ranks) {
  std::vector<int> ordinals;
  const std::vector<Seat> seats = AssignDevices(ranks).value();
  for (const Seat& seat : seats) ordinals.push_back(seat.ordinal);
  return ordinals;
}

absl::Status Refusal(const std::vector<RankFacts>& ranks) {
  return AssignDevices(ranks).status();
}

TEST(NcclRanksTest, RanksOfAMachineTakeOneDeviceAfterAnother) {
  const std::vector<RankFacts> ranks = {Rank("a", {"01", "02"}), Rank("b", {"01", "02"}),
                                        Rank("a", {"01", "02"}), Rank("b", {"01", "02"})};
  EXPECT_THAT(Ordinals(ranks), ElementsAre(0, 0, 1, 1));
}

TEST(NcclRanksTest, ARankThatSeesOneDeviceTakesItAlthoughALowerOneSeesItToo) {
  const std::vector<RankFacts> ranks = {Rank("a", {"01", "02"}), Rank("a", {"01"})};
  EXPECT_THAT(Ordinals(ranks), ElementsAre(1, 0));
}

TEST(NcclRanksTest, RanksWhoseDevicesOverlapGetOneEachWhereverThatCanBe) {
  const std::vector<RankFacts> ranks = {Rank("a", {"01", "02"}), Rank("a", {"02", "03"}),
                                        Rank("a", {"03", "01"}), Rank("a", {"03", "04"})};
  EXPECT_THAT(Ordinals(ranks), ElementsAre(0, 0, 0, 1));
  const std::vector<RankFacts> chain = {Rank("a", {"02", "01"}), Rank("a", {"02", "03"}),
                                        Rank("a", {"02"})};
  EXPECT_THAT(Ordinals(chain), ElementsAre(1, 1, 0));
}

TEST(NcclRanksTest, RanksThatMayShareTakeTheDevicesInTurnWhereThereAreTooFew) {
  std::vector<RankFacts> ranks(5, Rank("a", {"01", "02"}));
  for (RankFacts& rank : ranks) rank.may_share = true;
  EXPECT_THAT(Ordinals(ranks), ElementsAre(0, 1, 0, 1, 0));
  const std::vector<Seat> seats = AssignDevices(ranks).value();
  EXPECT_EQ(seats[4].ranks, 3);
  EXPECT_EQ(seats[1].ranks, 2);
}

TEST(NcclRanksTest, NobodySharesWithARankThatMayNot) {
  std::vector<RankFacts> ranks(2, Rank("a", {"01"}));
  ranks[1].may_share = true;
  EXPECT_THAT(Message(Refusal(ranks)), HasSubstr("NCCL_MULTI_RANK_GPU_ENABLE=1"));
}

TEST(NcclRanksTest, ContainersThatEachSeeOneOfAMachineCountItAsTheirFirst) {
  const std::vector<RankFacts> ranks = {Rank("a", {"02"}), Rank("a", {"01"})};
  EXPECT_THAT(Ordinals(ranks), ElementsAre(0, 0));
}

TEST(NcclRanksTest, NamesTheRanksThatWouldShareADevice) {
  const absl::Status status = Refusal({Rank("a", {"01"}), Rank("b", {"01"}), Rank("a", {"01"})});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("rank 2 has no GPU of its own"));
  EXPECT_THAT(Message(status), HasSubstr("ranks 0, 2, and it sees 1 there (01)"));
}

TEST(NcclRanksTest, SaysThatDevicesMayBeHiddenWhereNoneIsSeen) {
  EXPECT_THAT(Message(Refusal({Rank("a", {})})), HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(NcclRanksTest, NamesTheRankThatHasAProblemAndTheOneOfAnotherVersion) {
  std::vector<RankFacts> ranks = {Rank("a", {"01"}), Rank("b", {"01"})};
  ranks[1].version = "2.27.7";
  EXPECT_THAT(Message(Refusal(ranks)), HasSubstr("rank 0 has NCCL 2.30.7, rank 1 has 2.27.7"));
  ranks[1].problem = "no driver";
  EXPECT_THAT(Message(Refusal(ranks)), HasSubstr("rank 1 cannot use NCCL: no driver"));
}

TEST(NcclRanksTest, FactsComeThroughTheirTextAndATornOneIsRefused) {
  for (const auto& devices : {std::vector<std::string>{}, {"01"}, {"01", "02"}}) {
    const RankFacts facts = {"two\nlines", "2.30.7", "a", devices.size() == 1, devices};
    const std::string text = ToText(facts);
    const auto read = FactsFromText(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->problem, "two lines");
    EXPECT_EQ(read->version, facts.version);
    EXPECT_EQ(read->machine, facts.machine);
    EXPECT_EQ(read->may_share, facts.may_share);
    EXPECT_EQ(read->devices, devices);
    EXPECT_EQ(FactsFromText(text.substr(0, text.size() - 1)).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace ringmaster::collectives::nccl

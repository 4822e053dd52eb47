#include "runtime/collectives/explain/explain.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/collectives/selector.h"

namespace ringmaster::collectives::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainTest, NamesForEachSizeTheCheapestOfThePredictions) {
  Question question;
  question.shape = {8, 2};
  const auto object = nlohmann::json::parse(Json(question));
  EXPECT_EQ(object["ranks"], 8);
  ASSERT_EQ(object["sizes"].size(), 27u);  // 4 ... 256M
  for (const auto& size : object["sizes"]) {
    const auto& all = size["microseconds"];
    const double chosen = all[size["chosen"].get<std::string>()];
    for (const auto& [name, time] : all.items()) EXPECT_LE(chosen, time.get<double>()) << name;
  }
}

TEST(ExplainTest, SaysWhatIsForced) {
  Question question;
  question.forced = Algorithm::kRing;
  EXPECT_THAT(Table(question), HasSubstr("forced: ring"));
  const auto explained = nlohmann::json::parse(Json(question));
  for (const auto& size : explained["sizes"]) EXPECT_EQ(size["chosen"], "ring");
}

TEST(ExplainTest, HasNoTimeForWhatIsForcedAndMakesNoSense) {
  Question question;
  question.forced = Algorithm::kTwoLevel;
  EXPECT_THAT(Table(question), Not(HasSubstr("inf")));
}

TEST(ExplainTest, CallsOperationsAsTheBenchmarkDoes) {
  Question question;
  question.kind = OperationKind::kOrderedSum;
  EXPECT_THAT(Table(question), HasSubstr("ordered-sum, 4 ranks"));
  EXPECT_EQ(nlohmann::json::parse(Json(question))["operation"], "ordered-sum");
}

TEST(ExplainTest, SaysWhereTheNumbersAreFromAndLeavesOutLinksThatAreNotThere) {
  Question question;
  EXPECT_THAT(Table(question), HasSubstr("allreduce, 4 ranks on 4 nodes; built-in numbers"));
  EXPECT_THAT(Table(question), HasSubstr("between nodes: 25.00 us a message"));
  question.shape = {4, 1};
  EXPECT_THAT(Table(question), Not(HasSubstr("between nodes")));
}

TEST(ExplainTest, SaysWhatFurtherRanksCostWhereTheyShareMemory) {
  Question question;
  question.shape = {4, 1};
  EXPECT_THAT(Table(question), HasSubstr("Gbit/s), 0.100 for each further rank that it is for"));
  EXPECT_EQ(nlohmann::json::parse(Json(question))["within"]["againNanosecondsPerByte"], 0.1);
  question.model.within.again = 1;
  EXPECT_THAT(Table(question), Not(HasSubstr("further rank")));
}

TEST(ExplainTest, SaysWhatASecondExchangeCostsTwoRanksWhereThatWasMeasured) {
  Question question;
  question.shape = {2, 1};
  EXPECT_THAT(Table(question), Not(HasSubstr("second exchange")));
  question.model.within.turn = 60e-6;
  EXPECT_THAT(Table(question), HasSubstr("Gbit/s), 60.00 us before a second exchange"));
  EXPECT_EQ(nlohmann::json::parse(Json(question))["within"]["turnMicroseconds"], 60.0);
}

TEST(ExplainTest, SaysWhatHalvesCostANodesRanksWhereThatWasMeasured) {
  Question question;
  question.shape = {4, 1};
  EXPECT_THAT(Table(question), Not(HasSubstr("by halves")));
  question.model.within.again = 1;
  question.model.within.halves = -60e-6;
  EXPECT_THAT(Table(question), HasSubstr("Gbit/s), 60.00 us less for a megabyte by halves"));
  EXPECT_EQ(nlohmann::json::parse(Json(question))["within"]["halvesMicroseconds"], -60.0);
  question.model.within.halves = 60e-6;
  EXPECT_THAT(Table(question), HasSubstr("60.00 us more for a megabyte by halves"));
}

}  // namespace
}  // namespace ringmaster::collectives::explain

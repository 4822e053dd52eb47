#include "cli/pod_name.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"

namespace ringmaster::cli {
namespace {

TEST(PodNameTest, HasTheIndexAndTheIncarnationBehindTheJob) {
  EXPECT_EQ(ParsePodName("digits-3-12", "digits"), std::pair(3, 12));
  EXPECT_EQ(ParsePodName("a-1-0-2", "a-1"), std::pair(0, 2));
}

TEST(PodNameTest, OtherNamesAreNone) {
  for (const char* name :
       {"digits", "digits-", "digits-3", "digits-3-", "digits-x-0", "digits--1-0", "digits-3-0x",
        "digits-3--1", "digits-99999999999-0", "other-3-0"}) {
    EXPECT_FALSE(ParsePodName(name, "digits").has_value()) << name;
  }
}

TEST(PodNameTest, LabelsThatAreNoNumbersAreNone) {
  const auto Pod = [](const char* text) {
    return nlohmann::json{{"metadata", {{"labels", {{contract::kLabelIndex, text}}}}}};
  };
  EXPECT_EQ(IndexOf(Pod("7")), 7);
  for (const char* text : {"", "x", "7x", "-7", "99999999999"}) EXPECT_EQ(IndexOf(Pod(text)), -1);
  EXPECT_EQ(IncarnationOf(Pod("7")), -1);
}

}  // namespace
}  // namespace ringmaster::cli

#include "common/env.h"

#include <cstring>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "common/status.h"

namespace ringmaster::env {
namespace {

using ::testing::HasSubstr;

class EnvTest : public ::testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("RINGMASTER_LIFELINE_FD");
    ::unsetenv("RINGMASTER_LOG");
    ::unsetenv("RINGMASTER_DEBUG_ARRIVAL_ORDER");
  }
};

TEST_F(EnvTest, VariablesAreSortedAndDescribed) {
  for (size_t i = 0; i < All().size(); ++i) {
    EXPECT_NE(*All()[i].help, '\0') << All()[i].name;
    if (i > 0) {
      EXPECT_LT(std::strcmp(All()[i - 1].name, All()[i].name), 0) << All()[i].name;
    }
  }
}

TEST_F(EnvTest, UnsetVariableHasItsDefault) {
  EXPECT_EQ(GetInteger("RINGMASTER_LIFELINE_FD").value(), -1);
}

TEST_F(EnvTest, BadValueIsAnErrorThatNamesTheVariable) {
  ::setenv("RINGMASTER_LIFELINE_FD", "7x", 1);
  EXPECT_EQ(GetInteger("RINGMASTER_LIFELINE_FD").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(CheckAll()), HasSubstr("RINGMASTER_LIFELINE_FD"));
}

TEST_F(EnvTest, ValueThatIsNoneOfTheChoicesIsAnErrorThatListsThem) {
  ::setenv("RINGMASTER_LOG", "loud", 1);
  EXPECT_EQ(Message(CheckAll()),
            "environment variable RINGMASTER_LOG: 'loud' is not one of debug, info, warning, "
            "error");
  ::setenv("RINGMASTER_LOG", "debug", 1);
  EXPECT_TRUE(CheckAll().ok());
}

TEST_F(EnvTest, AValueIsCheckedWithoutBeingSet) {
  EXPECT_TRUE(CheckValue("RINGMASTER_LOG", "debug").ok());
  EXPECT_EQ(Message(CheckValue("RINGMASTER_LOG", "loud")),
            "environment variable RINGMASTER_LOG: 'loud' is not one of debug, info, warning, "
            "error");
  EXPECT_EQ(Message(CheckValue("RINGMASTER_PEER_TIMEOUT_SECONDS", "1m")),
            "environment variable RINGMASTER_PEER_TIMEOUT_SECONDS: '1m' is not a whole number");
  EXPECT_THAT(Message(CheckValue("RINGMASTER_PEER_INTERFACE", "net1,10.2.0.0/99")),
              HasSubstr("RINGMASTER_PEER_INTERFACE: '10.2.0.0/99' is neither"));
  EXPECT_TRUE(CheckValue("RINGMASTER_PEER_INTERFACE", "net1,10.2.0.0/16").ok());
  EXPECT_TRUE(CheckValue("RINGMASTER_LOG", "").ok()) << "as if it were not set";
  EXPECT_TRUE(CheckValue("OF_SOMEBODY_ELSE", "loud").ok());
}

TEST_F(EnvTest, ReferencePageIsCurrent) {
  const char* page = "docs/env.md";  // tests run in the source tree
  if (::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(page, Reference()).ok());
  }
  EXPECT_EQ(ReadFile(page).value(), Reference()) << "UPDATE_GOLDEN=1 writes it again";
}

TEST_F(EnvTest, DescriptionSaysWhereAValueComesFrom) {
  ::setenv("RINGMASTER_DEBUG_ARRIVAL_ORDER", "true", 1);
  EXPECT_THAT(Describe(), HasSubstr("RINGMASTER_DEBUG_ARRIVAL_ORDER=true  (environment)"));
  EXPECT_THAT(Describe(), HasSubstr("RINGMASTER_LIFELINE_FD=-1  (default)"));
}

}  // namespace
}  // namespace ringmaster::env

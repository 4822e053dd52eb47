#include "common/log.h"

#include <gtest/gtest.h>

#include "common/file.h"
#include "common/temporary_folder.h"

namespace ringmaster::log {
namespace {

TEST(LogTest, FieldsFollowTheMessageAndAreQuotedWhereNeeded) {
  EXPECT_EQ(FormatLine("pod created",
                       {{"pod", "digits-0-1"}, {"count", 3}, {"why", "worker 2 \"lost\"\nagain"}}),
            "pod created  pod=digits-0-1 count=3 why=\"worker 2 \\\"lost\\\" again\"");
}

TEST(LogTest, StatusIsWrittenWithItsCode) {
  EXPECT_EQ(FormatLine("failed", {{"error", absl::NotFoundError("gone")}}),
            "failed  error=\"NOT_FOUND: gone\"");
}

TEST(LogTest, UnknownLevelFallsBackToTheGivenOne) {
  EXPECT_EQ(ParseLevel("loud", Level::kWarning), Level::kWarning);
  EXPECT_EQ(ParseLevel("debug", Level::kWarning), Level::kDebug);
}

TEST(LogTest, LinesGoToTheFileOnceItIsSet) {
  const TemporaryFolder folder = TemporaryFolder::Make().value();
  const std::string path = folder.path() / "log";
  ASSERT_TRUE(ToFile(path).ok());
  Info("hello", {{"n", 1}});
  EXPECT_NE(ReadFile(path).value().find("info    hello  n=1\n"), std::string::npos);
}

}  // namespace
}  // namespace ringmaster::log

// Runs every tests/scenarios/*.txt and compares what it prints with what stands in the file, and
// then once for each change that the operator makes, killed before and after that one.
// UPDATE_GOLDEN=1 writes the file anew instead: read the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/scenarios/crashes.h"
#include "tests/scenarios/runner.h"
#include "tests/scenarios/script.h"

namespace ringmaster::scenarios {
namespace {

std::vector<std::string> ScenarioFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/scenarios")) {
    const bool cmake = entry.path().filename() == "CMakeLists.txt";
    if (!cmake && entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string PathOf(const std::string& name) {
  return "tests/scenarios/" + name + ".txt";
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ScenarioTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, PrintsWhatStandsInItsFile) {
  const std::string text = ReadAll(PathOf(GetParam()));
  absl::StatusOr<std::vector<Block>> blocks = ParseScript(text);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  Runner runner;
  for (Block& block : *blocks) {
    block.output.clear();
    for (const Command& command : block.commands) block.output += runner.Execute(command);
  }
  const std::string now = FormatScript(*blocks);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(PathOf(GetParam())) << now;
    return;
  }
  EXPECT_EQ(now, text) << "run again with UPDATE_GOLDEN=1 if this is what you want";
  EXPECT_EQ(now.find("BROKEN"), std::string::npos) << "an invariant does not hold";
}

// Stories in which the operator writes nothing: the job is another's, or refused.
const std::set<std::string> kWithoutCalls = {"managed-by", "names"};

class CrashTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CrashTest, TheStoryEndsAlikeWhereverTheOperatorIsKilled) {
  const absl::StatusOr<std::vector<Block>> blocks = ParseScript(ReadAll(PathOf(GetParam())));
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  std::vector<Command> story;
  for (const Block& block : *blocks) {
    for (const Command& command : block.commands) {
      if (command.name != "crash-at-each-call" && command.name != "kill") story.push_back(command);
    }
  }
  // A silence is waited for again by an operator that starts anew.
  story.push_back({.name = "advance", .words = {"60"}});
  const Crashes crashes = PlayCrashes({}, story, Seconds::kMayDiffer);
  EXPECT_EQ(crashes.broken, "");
  EXPECT_EQ(crashes.calls == 0, kWithoutCalls.contains(GetParam()));
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, ::testing::ValuesIn(ScenarioFiles()), TestName);
INSTANTIATE_TEST_SUITE_P(All, CrashTest, ::testing::ValuesIn(ScenarioFiles()), TestName);

}  // namespace
}  // namespace ringmaster::scenarios

// Runs every tests/scenarios/*.txt and compares what it prints with what stands in the file.
// UPDATE_GOLDEN=1 writes the file anew instead: read the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, ::testing::ValuesIn(ScenarioFiles()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ringmaster::scenarios

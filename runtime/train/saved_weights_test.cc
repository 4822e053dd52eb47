#include "runtime/train/saved_weights.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/temporary_folder.h"

namespace ringmaster::train {
namespace {

TEST(SavedWeightsTest, AStepStandsBehindTheLastAt) {
  using Parsed = std::pair<std::string, std::optional<int64_t>>;
  const auto parsed = [](const std::string& text) {
    const SavedWeights saved = ParseSavedWeights(text);
    return Parsed(saved.path.string(), saved.step);
  };
  EXPECT_EQ(parsed("runs/first@13"), Parsed("runs/first", 13));
  EXPECT_EQ(parsed("a@b@0"), Parsed("a@b", 0));
  for (const char* text : {"runs/first", "you@home", "a@", "a@-1", "a@1x", "a@1.safetensors"})
    EXPECT_EQ(parsed(text), Parsed(text, std::nullopt));
}

TEST(SavedWeightsTest, APathThatIsThereIsOneWhateverItsName) {
  const auto folder = TemporaryFolder::Make().value();
  const std::filesystem::path path = folder.path() / "run@2";
  EXPECT_EQ(ParseSavedWeights(path.string()).step, 2);
  std::filesystem::create_directory(path);
  EXPECT_EQ(ParseSavedWeights(path.string()).path, path);
  EXPECT_EQ(ParseSavedWeights(path.string() + "@3").step, 3);
}

}  // namespace
}  // namespace ringmaster::train

#include "runtime/train/saved_weights.h"

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ringmaster::train

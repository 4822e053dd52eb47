#include "common/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster {
namespace {

using ::testing::ElementsAre;

std::string Said(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return Message(status);
}

TEST(SettingsTest, GivesWhatTheManifestHasAndElseTheDefault) {
  Settings settings("settings", R"({"depth": -3, "rate": 0.5, "whole": 2, "bias": false,
                                    "kind": "wide", "sizes": [4, 8], "none": null})");
  EXPECT_EQ(settings.Integer("depth", 1), -3);
  EXPECT_EQ(settings.Number("rate", 1), 0.5);
  EXPECT_EQ(settings.Number("whole", 1), 2);
  EXPECT_FALSE(settings.Flag("bias", true));
  EXPECT_EQ(settings.Text("kind", "narrow"), "wide");
  EXPECT_THAT(settings.Integers("sizes", {}), ElementsAre(4, 8));
  EXPECT_EQ(settings.Integer("none", 7), 7);
  EXPECT_EQ(settings.Integer("absent", 8), 8);
  EXPECT_THAT(settings.Integers("absent too", {1, 2}), ElementsAre(1, 2));
  EXPECT_TRUE(settings.Finish().ok()) << settings.Finish();
}

TEST(SettingsTest, KeepsTheFirstMistakeAndGoesOnWithTheDefault) {
  Settings settings("model.settings", R"({"depth": "deep", "rate": true})");
  EXPECT_EQ(settings.Integer("depth", 5), 5);
  EXPECT_EQ(settings.Number("rate", 0.25), 0.25);
  EXPECT_EQ(Said(settings.status()), "model.settings.depth: \"deep\" is not a whole number");
  EXPECT_EQ(settings.Finish(), settings.status());
}

TEST(SettingsTest, KnowsEachTypeFromTheOthers) {
  const auto refused = [](const std::string& value, const auto& read) {
    Settings settings("s", "{\"x\": " + value + "}");
    read(settings);
    return settings.status().ok() ? "" : Message(settings.status());
  };
  const auto integer = [](Settings& s) { s.Integer("x", 0); };
  EXPECT_EQ(refused("1.5", integer), "s.x: 1.5 is not a whole number");
  EXPECT_EQ(refused("9223372036854775808", integer),
            "s.x: 9223372036854775808 is not a whole number");
  EXPECT_EQ(refused("9223372036854775807", integer), "");
  EXPECT_EQ(refused("\"1\"", [](Settings& s) { s.Number("x", 0); }), "s.x: \"1\" is not a number");
  EXPECT_EQ(refused("1", [](Settings& s) { s.Flag("x", true); }), "s.x: 1 is not true or false");
  EXPECT_EQ(refused("{}", [](Settings& s) { s.Text("x", ""); }), "s.x: {} is not a text");
  EXPECT_EQ(refused("[1, 0.5]", [](Settings& s) { s.Integers("x", {}); }),
            "s.x: [1,0.5] is not a list of whole numbers");
  EXPECT_EQ(refused("\"" + std::string(100, 'y') + "\"", integer),
            "s.x: \"" + std::string(59, 'y') + "... is not a whole number");
}

TEST(SettingsTest, RefusesWhatNobodyHasAskedFor) {
  Settings settings("s", R"({"widht": 8})");
  EXPECT_EQ(Said(settings.Finish()), "s.widht: unknown setting; there are none");
  settings.Integer("width", 1);
  settings.Integer("depth", 1);
  EXPECT_EQ(Said(settings.Finish()), "s.widht: unknown setting; there are depth, width");
}

TEST(SettingsTest, TakesAMistakeThatItsReaderFinds) {
  Settings settings("s", R"({"width": 7})");
  settings.Fail("width", "is no multiple of 8");
  EXPECT_EQ(Said(settings.status()), "s.width: is no multiple of 8");
}

TEST(SettingsTest, IsEmptyWhereTheManifestHasNoneAndRefusesWhatIsNoObject) {
  EXPECT_TRUE(Settings("s").Finish().ok());
  EXPECT_EQ(Said(Settings("s", "[1]").Finish()), "s: not a JSON object");
  EXPECT_EQ(Said(Settings("s", "{").Finish()), "s: not a JSON object");
}

}  // namespace
}  // namespace ringmaster

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/plot/csv_table.h"
#include "runtime/train/plot/curve.h"
#include "runtime/train/plot/svg_plot.h"
#include "runtime/train/plot/text_plot.h"

namespace ringmaster::train::plot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using training::v1alpha1::TrainerConfig;

TrainerConfig Falling() {
  TrainerConfig config;
  config.optimizer.sgd.emplace();
  config.optimizer.sgd->learning_rate = 4.8;
  config.optimizer.sgd->weight_decay = 1e-4;
  config.schedule.emplace();
  config.schedule->polynomial.emplace();
  return config;
}

constexpr optim::RunLength kRun = {.total_steps = 8040, .samples = 1'281'167, .batch = 14'336};

TEST(CurveTest, HoldsTheLeastAndTheLargestValueOfEachColumn) {
  const Curves curves = MakeCurves(Falling(), kRun, 10);
  ASSERT_EQ(curves.rate.columns.size(), 10u);
  EXPECT_DOUBLE_EQ(curves.rate.columns[1].high, 4.8 * 0.9);
  EXPECT_DOUBLE_EQ(curves.rate.columns[1].low, 4.8 * (1 - 1607.0 / 8040));
  EXPECT_NEAR(curves.rate.last, 4.8 / 8040, 1e-12);
  EXPECT_EQ(curves.rate.highest_step, 0u);
  EXPECT_TRUE(curves.decay.constant());
}

TEST(CurveTest, MissesNoPeakOfOneStep) {
  TrainerConfig config = Falling();
  config.schedule->warmup.emplace();
  config.schedule->warmup->linear.emplace();
  config.schedule->warmup->linear->steps = 446;
  const Curves curves = MakeCurves(config, kRun, 68);
  EXPECT_DOUBLE_EQ(curves.rate.highest, 4.8 * 445 / 446);
  EXPECT_EQ(curves.rate.highest_step, 445u);
}

TEST(CurveTest, DrawsRunsOfOneStepAndOfAnyLength) {
  EXPECT_EQ(MakeCurves(Falling(), {.total_steps = 1}, 68).rate.columns.size(), 68u);
  const Curves curves = MakeCurves(Falling(), {.total_steps = uint64_t{1} << 62}, 68);
  EXPECT_NEAR(curves.rate.columns[34].high, 2.4, 1e-6);
}

TEST(CsvTest, HoldsEveryStepInAsManyDigitsAsReadTheSame) {
  const std::string table = Csv(Falling(), {.total_steps = 3}).value();
  EXPECT_EQ(table, "step,learning_rate,weight_decay\n0,4.8,0.0001\n1,3.2,0.0001\n2,1.6,0.0001\n");
  EXPECT_THAT(Csv(Falling(), {.total_steps = 1'000'001}).status().message(),
              HasSubstr("at most 1000000 steps, the run has 1000001"));
}

TEST(TextPlotTest, DrawsTheRateAndSaysWhatItIs) {
  const std::string text = Text(MakeCurves(Falling(), kRun, 68));
  EXPECT_THAT(text, HasSubstr("8040 steps: 89.97 epochs of 1281167 samples in batches of 14336"));
  EXPECT_THAT(text, HasSubstr("learning rate: first 4.8, highest 4.8 at step 0, last 0.000597015"));
  EXPECT_THAT(text, HasSubstr("       4.8 |***\n"));
  EXPECT_THAT(text, HasSubstr("weight decay: 0.0001 throughout\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 22);
}

TEST(TextPlotTest, DrawsTheWeightDecayWhereItChanges) {
  TrainerConfig config = Falling();
  config.schedule->collapse.emplace();
  config.schedule->collapse->steps = 402;
  const std::string text = Text(MakeCurves(config, kRun, 68));
  EXPECT_THAT(text, HasSubstr("weight decay: first 0.0001, highest 0.0002 at step 7638"));
  EXPECT_THAT(text, Not(HasSubstr("throughout")));
}

TEST(SvgPlotTest, HasALineForEachThatChanges) {
  const auto lines = [](const std::string& svg) {
    size_t count = 0;
    for (size_t at = svg.find("<polyline"); at != std::string::npos;
         at = svg.find("<polyline", at + 1))
      ++count;
    return count;
  };
  TrainerConfig config = Falling();
  EXPECT_EQ(lines(Svg(MakeCurves(config, kRun, kSvgColumns))), 1u);
  config.schedule->weight_decay = {{.epoch = 0, .factor = 1}, {.epoch = 90, .factor = 2}};
  const std::string svg = Svg(MakeCurves(config, kRun, kSvgColumns));
  EXPECT_EQ(lines(svg), 2u);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace ringmaster::train::plot

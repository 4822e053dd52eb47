#include "cli/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/text.h"

namespace ringmaster::cli {
namespace {

using ::testing::ElementsAre;

JobView Digits() {
  JobView job;
  job.name = "digits";
  job.model = "lenet-bn, 61,514 parameters";
  job.batch = 64;
  job.shards = 4;
  job.seed = 7;
  job.workers = 4;
  job.state = "Running";
  job.step = 268;
  job.total_steps = 448;
  job.epoch = 11.9;
  job.epochs = 20;
  job.loss = 0.0812;
  job.accuracy = 0.972;
  job.samples_per_second = 1920;
  job.members = {{0, WorkerState::kRunning, 0.0041, ""},
                 {1, WorkerState::kLost, 0, "killed (SIGKILL)"},
                 {2, WorkerState::kStarting, 0, ""},
                 {3, WorkerState::kDone, 0, ""}};
  return job;
}

TEST(ViewTest, HeaderSaysWhatTrainsAndOnHowManyWorkers) {
  EXPECT_EQ(HeaderLine(Digits()),
            "digits  lenet-bn, 61,514 parameters · batch 64 in 4 shards · 4 workers on this "
            "machine · seed 7");
}

TEST(ViewTest, HeaderNamesThePlainRing) {
  JobView job = Digits();
  job.shards = 0;
  EXPECT_NE(HeaderLine(job).find("batch 64 plain ring"), std::string::npos);
}

TEST(ViewTest, ProgressShowsTheRunningEpochAndTheTimeLeft) {
  EXPECT_EQ(ProgressLine(Digits()),
            "epoch 12/20  step 268/448   loss 0.081   acc 97.2 %   1,920 samples/s   eta 6.0 s");
}

TEST(ViewTest, ProgressCountsStepsThatWereLeftOut) {
  JobView job = Digits();
  job.skipped_steps = 3;
  EXPECT_EQ(ProgressLine(job),
            "epoch 12/20  step 268/448   loss 0.081   3 skipped   acc 97.2 %   1,920 samples/s   "
            "eta 6.0 s");
}

TEST(ViewTest, ProgressShowsWhatElseTheDataIsJudgedBy) {
  JobView job = Digits();
  job.measure = "";
  EXPECT_EQ(ProgressLine(job), ProgressLine(Digits())) << "before the first evaluation";
  job.measure = "perplexity 7.83";
  EXPECT_EQ(ProgressLine(job),
            "epoch 12/20  step 268/448   loss 0.081   acc 97.2 %   perplexity 7.83   1,920 "
            "samples/s   eta 6.0 s");
}

TEST(ViewTest, LastEpochIsNotExceededAtTheEnd) {
  JobView job = Digits();
  job.epoch = 20;
  EXPECT_EQ(ProgressLine(job).find("epoch 20/20"), 0u);
}

TEST(ViewTest, ProgressBeforeTheFirstStepIsTheState) {
  JobView job = Digits();
  job.step = 0;
  job.state = "Pending";
  EXPECT_EQ(ProgressLine(job), "Pending");
}

TEST(ViewTest, WorkersShowStepTimeOrWhatHappened) {
  EXPECT_THAT(WorkerLines(Digits(), 80, false),
              ElementsAre("  w0 ● 4.1 ms   w1 ✗ killed (SIGKILL)   w2 ○   w3 ✓"));
}

TEST(ViewTest, WorkersTakeAsManyLinesAsTheyNeedButFew) {
  JobView job = Digits();
  EXPECT_THAT(WorkerLines(job, 42, false),
              ElementsAre("  w0 ● 4.1 ms   w1 ✗ killed (SIGKILL)", "  w2 ○   w3 ✓"));
  job.members.assign(100, {7, WorkerState::kStarting, 0, ""});
  const auto lines = WorkerLines(job, 80, false);
  EXPECT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines.back(), "  and 56 more");
}

TEST(ViewTest, BarKeepsItsLengthWhenTheNumbersGrow) {
  JobView job = Digits();
  const auto bar = [&](int width) {
    const std::string first = LiveBlock(job, width, false).front();
    return DisplayWidth(first.substr(0, first.find_first_of("abcdefghijklmnopqrstuvwxyz")));
  };
  for (const int width : {80, 120, 200}) {
    job = Digits();
    job.step = 1;
    job.samples_per_second = 0;
    job.accuracy.reset();
    const int before = bar(width);
    job = Digits();
    EXPECT_EQ(bar(width), before) << width;
    job.measure = "";
    const int without = bar(width);
    job.measure = "perplexity 1.235e+06";
    EXPECT_EQ(bar(width), without) << width;
  }
}

TEST(ViewTest, NarrowTerminalShowsTheTimeLeftBesideTheBar) {
  const auto block = LiveBlock(Digits(), 80, false);
  EXPECT_TRUE(block[0].ends_with("─  eta 6.0 s")) << block[0];
  EXPECT_EQ(block[1], "  epoch 12/20  step 268/448   loss 0.081   acc 97.2 %   1,920 samples/s");
}

TEST(ViewTest, RateOfAnEarlierRoundIsNotShownWhileTheJobRestarts) {
  JobView job = Digits();
  job.state = "Restarting";
  EXPECT_EQ(ProgressLine(job), "Restarting   epoch 12/20  step 268/448   loss 0.081   acc 97.2 %");
}

TEST(ViewTest, BlockWithoutColoursHasNone) {
  for (const std::string& line : LiveBlock(Digits(), 80, false))
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
}

TEST(ViewTest, LiveBlockFitsEveryWidth) {
  for (int width = 8; width < 200; ++width) {
    for (const std::string& line : LiveBlock(Digits(), width, true))
      EXPECT_LE(DisplayWidth(line), width) << line;
  }
}

}  // namespace
}  // namespace ringmaster::cli

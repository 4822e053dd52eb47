// The benchmark's text, and the program itself: that ranks meet, verify and print.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "runtime/collectives/bench/measure.h"
#include "runtime/collectives/bench/report.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives::bench {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchOptionsTest, ReadsSizesInPowersOf1024) {
  EXPECT_EQ(*ParseSize("4"), 4u);
  EXPECT_EQ(*ParseSize("64K"), 65536u);
  EXPECT_EQ(*ParseSize("256M"), size_t{256} << 20);
  for (const char* wrong : {"", "K", "4Q", "-1", "0", "1.5M", "17G", "99999999999999999999"})
    EXPECT_FALSE(ParseSize(wrong).ok()) << wrong;
}

TEST(BenchOptionsTest, StepsFromTheSmallestSizeToTheLargest) {
  Options options;
  options.min_bytes = 4;
  options.max_bytes = 100;
  options.factor = 4;
  EXPECT_THAT(*Sizes(options), ElementsAre(4, 16, 64));
  options.max_bytes = 3;
  EXPECT_EQ(Sizes(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BenchReportTest, CountsBandwidthAsNcclTestsDo) {
  Options options;
  options.ranks = 4;
  Row row;
  row.bytes = 1'000'000;
  row.count = 250'000;
  row.out_of_place = {1e-3, 0};
  row.in_place = {2e-3, 3};
  EXPECT_THAT(Line(options, row),
              ContainsRegex("1000000 +250000 +float +sum +-1 +1000.0 +1.00 +1.50 +0 +2000.0 +0.50 "
                            "+0.75 +3\n"));
  EXPECT_THAT(Footer(options, {row}), HasSubstr("# Out of bounds values : 3 FAILED\n"
                                                "# Avg bus bandwidth    : 1.125\n"));
}

TEST(BenchReportTest, PutsTheColumnsUnderTheirNames) {
  Options options;
  const std::string header = Header(options);
  const std::string line = Line(options, Row{});
  const std::string names = header.substr(header.rfind('\n', header.size() - 2) + 1);
  EXPECT_EQ(names.size(), line.size());
}

// A program's standard output and how it ended.
struct Ended {
  std::string output;
  int code = -1;
};

Ended RunProgram(const std::string& arguments) {
  const char* bin = std::getenv("RINGMASTER_BIN_DIR");
  const std::string command = fmt::format("timeout 60 {}/ringmaster-bench-collectives {} 2>&1",
                                          bin == nullptr ? "build/release/bin" : bin, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  Ended ended;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof(buffer), pipe))
    ended.output.append(buffer, got);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

TEST(BenchProgramTest, RanksAsProcessesVerifyAndPrintATable) {
  const Ended run = RunProgram("--ranks 3 --min 4 --max 1M --factor 512 --iters 2 --warmup 1");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("of 3 ranks"));
  EXPECT_THAT(run.output, ContainsRegex("\n +4 +1 +float +sum +-1 "));
  EXPECT_THAT(run.output, ContainsRegex("\n +1048576 +262144 +float +sum +-1 "));
  EXPECT_THAT(run.output, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(BenchProgramTest, PrintsJson) {
  const Ended run = RunProgram("--ranks 2 --min 1K --max 1K --iters 1 --warmup 0 --json");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(run.output.front(), '{');
  EXPECT_THAT(run.output, HasSubstr(R"("size":1024,"count":256,"type":"float","redop":"sum")"));
  EXPECT_THAT(run.output, HasSubstr(R"("wrong":0)"));
}

TEST(BenchProgramTest, SaysWhichFlagIsWrong) {
  for (const char* arguments : {"--min 4Q", "--op dance", "--ranks 0", "--min 8 --max 4",
                                "--transport carrier-pigeon", "surplus"}) {
    const Ended run = RunProgram(arguments);
    EXPECT_EQ(run.code, 64) << arguments << ": " << run.output;
    EXPECT_NE(run.output, "");
  }
}

}  // namespace
}  // namespace ringmaster::collectives::bench

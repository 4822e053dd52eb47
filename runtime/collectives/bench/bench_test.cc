// The benchmark's text, and the program itself: that ranks meet, verify and print.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "common/contract.h"
#include "runtime/collectives/bench/hosts.h"
#include "runtime/collectives/bench/measure.h"
#include "runtime/collectives/bench/pattern.h"
#include "runtime/collectives/bench/report.h"
#include "runtime/collectives/bench/workload.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives::bench {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

MATCHER_P2(IsPoint, bytes, iterations, "") {
  return arg.bytes == static_cast<size_t>(bytes) && arg.iterations == iterations;
}

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
  EXPECT_THAT(*Points(options), ElementsAre(IsPoint(4, 20), IsPoint(16, 20), IsPoint(64, 20)));
  options.max_bytes = 3;
  EXPECT_EQ(Points(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BenchOptionsTest, TakesSizesWithTheirOwnNumberOfCalls) {
  Options options;
  options.points = "4:1000,64K,16M:5";
  EXPECT_THAT(*Points(options),
              ElementsAre(IsPoint(4, 1000), IsPoint(65536, 20), IsPoint(16 << 20, 5)));
  for (const char* wrong : {"4:", "4:0", "4:1x", ",", "4,", ":5", "4:5:6"}) {
    options.points = wrong;
    EXPECT_EQ(Points(options).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(BenchHostsTest, PutsNeighboursOnOneHost) {
  const std::vector<Host> hosts = *ParseHosts("11@10.0.0.1,12@10.0.0.2");
  ASSERT_EQ(hosts.size(), 2u);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(HostOf(hosts, rank, 4).pid, rank < 2 ? 11 : 12);
  EXPECT_EQ(HostOf(hosts, 3, 4).address, "10.0.0.2");
  EXPECT_EQ(HostOf({}, 3, 4).address, "127.0.0.1");
  for (const char* wrong : {"11", "@10.0.0.1", "11@", "x@10.0.0.1", "11@10.0.0.1,,", "-1@10.0.0.1"})
    EXPECT_FALSE(ParseHosts(wrong).ok()) << wrong;
}

TEST(BenchReportTest, CountsBandwidthAsNcclTestsDo) {
  Options options;
  options.ranks = 4;
  Row row;
  row.bytes = 1'000'000;
  row.count = 250'000;
  row.out_of_place = Timing{1e-3, 0};
  row.in_place = Timing{2e-3, 3};
  EXPECT_THAT(Line(options, row),
              ContainsRegex("1000000 +250000 +float +sum +-1 +1000.0 +1.00 +1.50 +0 +2000.0 +0.50 "
                            "+0.75 +3\n"));
  EXPECT_THAT(Footer(options, {row}), HasSubstr("# Out of bounds values : 3 FAILED\n"
                                                "# Avg bus bandwidth    : 1.125\n"));
}

TEST(BenchReportTest, NamesWhatWasMeasuredWhileTheProcessorsWereSlower) {
  Row small;
  small.bytes = 4;
  small.out_of_place = Timing{.seconds = 1e-6, .step_ns = 1.0};
  small.in_place = Timing{.seconds = 1e-6, .step_ns = 1.2};
  Row large;
  large.bytes = 1024;
  large.out_of_place = Timing{.seconds = 1e-6, .step_ns = 2.0};
  large.in_place = Timing{.seconds = 1e-6, .step_ns = 1.5};
  EXPECT_THAT(Footer({}, {small, large}),
              HasSubstr("# Slower processors    : 1024 out-of-place 2.0x, 1024 in-place 1.5x\n"));
  EXPECT_THAT(Footer({}, {small}), Not(HasSubstr("Slower")));
}

TEST(BenchReportTest, KnowsWhatTheLinksCarryForEachOperation) {
  EXPECT_DOUBLE_EQ(BusFactor("allreduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor("ordered-sum", 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor("broadcast", 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor("reduce", 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor("send-receive", 4), 1);
  for (const char* op : {"reduce-scatter", "allgather", "gather", "scatter", "all-to-all"})
    EXPECT_DOUBLE_EQ(BusFactor(op, 4), 0.75) << op;
}

TEST(BenchReportTest, PutsTheColumnsUnderTheirNames) {
  Options options;
  const std::string header = Header(options);
  const std::string line = Line(options, Row{});
  const std::string names = header.substr(header.rfind('\n', header.size() - 2) + 1);
  EXPECT_EQ(names.size(), line.size());
  EXPECT_THAT(header, ContainsRegex("out-of-place +in-place"));
  EXPECT_THAT(header, ContainsRegex("size +count +type +redop +root +time +algbw +busbw +#wrong +"
                                    "time +algbw +busbw +#wrong"));
}

TEST(BenchReportTest, PutsWhatIsBesideInColumnsOfItsOwn) {
  Options options;
  options.op = "ordered-sum";
  options.beside = "allreduce";
  Row row;
  row.out_of_place = Timing{1.1e-3, 0};
  row.beside = Timing{1e-3, 2};
  const std::string header = Header(options);
  EXPECT_THAT(header, HasSubstr("allreduce"));
  const std::string line = Line(options, row);
  EXPECT_EQ(header.size() - header.rfind('\n', header.size() - 2) - 1, line.size());
  EXPECT_THAT(line, ContainsRegex(" 1000.0 +1.10 +2\n"));
  EXPECT_THAT(
      Json(options, {row}),
      HasSubstr(R"("beside":{"op":"allreduce","time_us":1000.000,"ratio":1.1000,"wrong":2}})"));
  EXPECT_EQ(AllWrong({row}), 2u);
}

// One operation of ranks as threads, out of place and in place; its row.
Row RowOf(const Options& options, size_t bytes) {
  Row row;
  testing::Group group(options.ranks);
  group.Run([&](Communicator& communicator) {
    const auto measured = Measure(communicator, options, {bytes, 2});
    ASSERT_TRUE(measured.ok()) << options.op << ": " << measured.status();
    if (communicator.rank() == 0) row = *measured;
  });
  return row;
}

TEST(BenchMeasureTest, VerifiesEveryOperationOfEveryTypeAndRoot) {
  for (const std::string& op : OperationNames()) {
    for (const std::string& type : TypeNames()) {
      if (op == "ordered-sum" && type != "float" && type != "double") continue;
      Options options;
      options.ranks = 3;
      options.op = op;
      options.type = type;
      options.root = 2;
      const Row row = RowOf(options, 4000);
      EXPECT_EQ(row.root, HasRoot(op) ? 2 : -1);
      EXPECT_EQ(AllWrong({row}), 0u) << op << " of " << type;
      EXPECT_TRUE(row.out_of_place.has_value() || row.in_place.has_value());
      EXPECT_LE(row.bytes, 4000u);
      EXPECT_GE(row.bytes, op == "barrier" ? 0u : 3970u) << op << " of " << type;
    }
  }
}

TEST(BenchMeasureTest, VerifiesEveryReductionOfEveryType) {
  for (const char* op : {"allreduce", "reduce-scatter", "reduce"}) {
    for (const std::string& type : TypeNames()) {
      for (const std::string& redop : ReductionNames()) {
        Options options;
        options.op = op;
        options.type = type;
        options.redop = redop;
        EXPECT_EQ(AllWrong({RowOf(options, 2000)}), 0u) << op << " " << redop << " of " << type;
      }
    }
  }
}

TEST(BenchPatternTest, CountsWhatIsWrong) {
  std::vector<float> values(1000);
  const Pattern pattern = Combined(ElementType::kF32, Reduction::kSum, 5);
  Fill(values, pattern, 77);
  EXPECT_EQ(CountWrong(values, pattern, 77), 0u);
  EXPECT_GT(CountWrong(values, pattern, 78), 500u);
  values[0] += 1;
  values[999] += 1;
  EXPECT_EQ(CountWrong(values, pattern, 77), 2u);
}

TEST(BenchPatternTest, TellsRanksApart) {
  for (int rank = 1; rank < 64; ++rank)
    EXPECT_NE(MovedBy(ElementType::kU8, rank), MovedBy(ElementType::kU8, rank - 1));
  EXPECT_NE(Combined(ElementType::kF32, Reduction::kProduct, 3),
            Combined(ElementType::kF32, Reduction::kProduct, 2));
}

// A program's standard output and how it ended.
struct Ended {
  std::string output;
  int code = -1;
};

Ended RunProgram(const std::string& arguments, const std::string& environment = "") {
  const char* bin = std::getenv("RINGMASTER_BIN_DIR");
  const std::string command =
      fmt::format("{} timeout 60 {}/ringmaster-bench-collectives {} 2>&1", environment,
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

TEST(BenchProgramTest, SumsAsManyShardsAsItIsTold) {
  const Ended run = RunProgram("--op ordered-sum --ranks 3 --shards 7 --sizes 4:2,300K:2");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("# Out of bounds values : 0 OK"));
  const Ended few = RunProgram("--op ordered-sum --ranks 3 --shards 2");
  EXPECT_NE(few.code, 0);
  EXPECT_THAT(few.output, HasSubstr("--shards: 2 are too few for 3 ranks"));
}

TEST(BenchProgramTest, UsesTheCongestionControlThatItIsToldOrSaysThatTheMachineHasNone) {
  constexpr char kArguments[] = "--ranks 2 --transport tcp --sizes 1M:2";
  const Ended run = RunProgram(kArguments, "RINGMASTER_TCP_CONGESTION_CONTROL=reno");
  EXPECT_EQ(run.code, 0) << run.output;
  const Ended refused = RunProgram(kArguments, "RINGMASTER_TCP_CONGESTION_CONTROL=hearsay");
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.output, HasSubstr("TCP congestion control 'hearsay': this machine has none"));
}

TEST(BenchProgramTest, PrintsJson) {
  const Ended run = RunProgram("--ranks 2 --min 1K --max 1K --iters 1 --warmup 0 --json");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(run.output.front(), '{');
  EXPECT_THAT(run.output, HasSubstr(R"("size":1024,"count":256,"type":"float","redop":"sum")"));
  EXPECT_THAT(run.output, ContainsRegex(R"("wrong":0,"step_ns":[0-9.]*[1-9])"));
}

TEST(BenchProgramTest, MeasuresEncryptedConnections) {
  const std::string flags = "--ranks 2 --transport tcp --tls --sizes 4:2,300K:2";
  const Ended run = RunProgram(flags);
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("transport tcp with TLS"));
  EXPECT_THAT(run.output, HasSubstr("# Out of bounds values : 0 OK"));
  EXPECT_THAT(RunProgram(flags + " --json").output, HasSubstr(R"("transport":"tcp","tls":true)"));
}

TEST(BenchProgramTest, MeasuresEachTransportThatItIsTold) {
  for (const std::string transport : {"auto", "tcp", "shm"}) {
    const Ended run =
        RunProgram(fmt::format("--ranks 3 --transport {} --sizes 4:2,300K:2", transport));
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("transport " + transport));
    EXPECT_THAT(run.output, HasSubstr("# Out of bounds values : 0 OK"));
  }
}

TEST(BenchProgramTest, MeasuresTwoOperationsInTurns) {
  const std::string flags = "--op ordered-sum --beside allreduce --ranks 3 --sizes 4:20,300K:2";
  const Ended run = RunProgram(flags);
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("# Out of bounds values : 0 OK"));
  const Ended json = RunProgram(flags + " --json");
  EXPECT_THAT(json.output, ContainsRegex(R"("beside":\{"op":"allreduce","time_us":[0-9.]+,)"));
  EXPECT_THAT(RunProgram("--op broadcast --beside barrier --sizes 4:3 --json").output,
              ContainsRegex(R"("out_of_place":null,"in_place":\{.*"beside":\{"op":"barrier")"));
}

TEST(MeasureTest, CallsTwoOperationsInNineTurnsEachAfterACallThatDoesNotCount) {
  testing::Group group(2);
  group.Run([](Communicator& comm) {
    Options options;
    options.op = "ordered-sum";
    options.beside = "allreduce";
    options.warmup = 5;
    uint64_t before = 0;
    // One that is checked, then the warm-up, then the turns.
    for (const auto& [iterations, expected] : {std::pair<int, uint64_t>{20, 1 + 5 + 9 * (1 + 2)},
                                               std::pair<int, uint64_t>{3, 1 + 3 + 9 * (1 + 1)}}) {
      const auto row = Measure(comm, options, Point{.bytes = 1024, .iterations = iterations});
      ASSERT_TRUE(row.ok()) << row.status();
      const CommunicatorStats stats = comm.stats();
      EXPECT_EQ(stats.of(OperationKind::kOrderedSum).calls, before + expected);
      EXPECT_EQ(stats.of(OperationKind::kAllreduce).calls, before + expected);
      before += expected;
    }
  });
}

TEST(MeasureTest, GivesEveryRankTheStepOfTheSlowestProcessor) {
  testing::Group group(2);
  double steps[2] = {};
  group.Run([&](Communicator& comm) {
    const auto row = Measure(comm, Options{}, Point{.bytes = 1024, .iterations = 3});
    ASSERT_TRUE(row.ok()) << row.status();
    EXPECT_GT(row->out_of_place->step_ns, 0);
    steps[comm.rank()] = row->in_place->step_ns;
  });
  EXPECT_GT(steps[0], 0);
  EXPECT_EQ(steps[0], steps[1]);
}

// No machine has so many GPUs.
TEST(BenchProgramTest, SaysOnceWhatNcclLacks) {
  const Ended run = RunProgram("--transport nccl --ranks 64", "NCCL_MULTI_RANK_GPU_ENABLE=0");
  EXPECT_TRUE(run.code == contract::kExitFailure || run.code == contract::kExitBadConfig)
      << run.code;
  EXPECT_THAT(run.output, StartsWith("--transport nccl: "));
  EXPECT_THAT(run.output,
              AnyOf(HasSubstr("missing: the NVIDIA driver (libcuda.so.1"),
                    HasSubstr("missing: NCCL (libnccl.so.2"), HasSubstr("offers no GPU"),
                    HasSubstr("64 ranks need a GPU each"), HasSubstr("built without NCCL")));
  EXPECT_EQ(std::ranges::count(run.output, '\n'), 1) << run.output;
}

// The process of `rank` among the children of the benchmark `parent`.
pid_t ProcessOf(pid_t parent, int rank) {
  const std::string wanted = fmt::format("--rank{}{}", '\0', rank) + '\0';
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "stat");
    std::string field;
    for (int i = 0; i < 4; ++i) status >> field;
    if (field != std::to_string(parent)) continue;
    std::ifstream file(entry.path() / "cmdline");
    const std::string arguments(std::istreambuf_iterator<char>(file), {});
    if (arguments.ends_with(wanted)) return std::stoi(name);
  }
  return -1;
}

// Runs three ranks, sends `signal` to rank 1 while they are inside a million calls, and returns
// what the program printed before it ended.
std::string OutputWhereRank1Gets(int signal, const char* transport) {
  const char* bin = std::getenv("RINGMASTER_BIN_DIR");
  const std::string program =
      fmt::format("{}/ringmaster-bench-collectives", bin == nullptr ? "build/release/bin" : bin);
  int out[2];
  if (pipe(out) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], 1);
    dup2(out[1], 2);
    execl(program.c_str(), program.c_str(), "--ranks", "3", "--sizes", "4:1,8:1000000,8:1000000",
          "--timeout", "6", "--transport", transport, nullptr);
    _exit(127);
  }
  close(out[1]);
  FILE* output = fdopen(out[0], "r");
  std::string text;
  char line[512];
  // After the first row the ranks are inside the million calls of the second.
  while (text.find(" float ") == std::string::npos && std::fgets(line, sizeof(line), output))
    text += line;
  const pid_t victim = ProcessOf(pid, 1);
  EXPECT_GT(victim, 0) << text;
  if (victim > 0) {
    EXPECT_EQ(kill(victim, signal), 0);
  }
  while (std::fgets(line, sizeof(line), output)) text += line;  // until all have ended
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  fclose(output);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << text;
  EXPECT_TRUE(victim <= 0 || kill(victim, 0) != 0) << "the rank is still there";
  return text;
}

TEST(BenchProgramTest, EndsAndNamesTheRankThatIsStopped) {
  EXPECT_THAT(OutputWhereRank1Gets(SIGSTOP, "auto"), HasSubstr("rank 1 has been stopped for 6 s"));
}

// As a rank says it that is left.
const auto kNamesRank1 = ContainsRegex("rank [02]: .*rank 1 \\(");

TEST(BenchProgramTest, EndsAndNamesTheRankThatIsKilled) {
  EXPECT_THAT(OutputWhereRank1Gets(SIGKILL, "auto"), kNamesRank1);
}

// Whether NCCL can carry three ranks here.
bool NcclCarriesThree() {
  static const bool carries = RunProgram("--transport nccl --ranks 3 --sizes 4:1").code == 0;
  return carries;
}

TEST(BenchProgramTest, EndsAndNamesTheRankThatIsStoppedWhileNcclWorks) {
  if (!NcclCarriesThree()) GTEST_SKIP() << "needs three GPUs, or one that ranks may share";
  EXPECT_THAT(OutputWhereRank1Gets(SIGSTOP, "nccl"), HasSubstr("rank 1 has been stopped for 6 s"));
}

TEST(BenchProgramTest, EndsAndNamesTheRankThatIsKilledWhileNcclWorks) {
  if (!NcclCarriesThree()) GTEST_SKIP() << "needs three GPUs, or one that ranks may share";
  EXPECT_THAT(OutputWhereRank1Gets(SIGKILL, "nccl"), kNamesRank1);
}

TEST(BenchProgramTest, MeasuresEveryOperationOverNccl) {
  if (!NcclCarriesThree()) GTEST_SKIP() << "needs three GPUs, or one that ranks may share";
  for (const std::string& op : OperationNames()) {
    const Ended run =
        RunProgram(fmt::format("--transport nccl --ranks 2 --op {} --sizes 4:5,20M:2", op));
    EXPECT_EQ(run.code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("# Out of bounds values : 0 OK"));
  }
}

TEST(BenchProgramTest, SaysWhichFlagIsWrong) {
  for (const char* arguments :
       {"--min 4Q", "--op dance", "--ranks 0", "--min 8 --max 4", "--transport carrier-pigeon",
        "surplus", "--type quarter", "--redop xor", "--ranks 2 --root 2", "--sizes 4:0",
        "--timeout 0", "--hosts x", "--beside dance", "--transport nccl --tls"}) {
    const Ended run = RunProgram(arguments);
    EXPECT_EQ(run.code, 64) << arguments << ": " << run.output;
    EXPECT_NE(run.output, "");
  }
}

}  // namespace
}  // namespace ringmaster::collectives::bench

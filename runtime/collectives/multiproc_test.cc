// Ranks as processes of their own, one of which is killed or stopped: the survivors name it.
//
// The test program starts itself again with `--rank` for each rank. A rank prints its address,
// reads everybody's, and reduces, or makes one operation or every one there is, until it fails;
// each line that it prints is read here with a deadline. Where the moment counts, what reaches or
// leaves the victim goes through a relay of this process, which counts it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <poll.h>
#include <set>
#include <signal.h>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/check.h"
#include "common/exec_arguments.h"
#include "common/file.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/transport/shm/segment.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWorld = testing::kCallWorld;
constexpr milliseconds kOperationTimeout = testing::kImpatience;
constexpr milliseconds kSlack{10000};  // for a busy machine
// A sanitizer takes long to start a program, and ranks have no longer to connect for it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRoundsAtOnce = 2;
#else
constexpr int kRoundsAtOnce = 4;
#endif

// A child process with pipes to its standard input and output.
class Child {
 public:
  explicit Child(const std::vector<std::string>& arguments) {
    int to_child[2];
    int from_child[2];
    RM_CHECK(pipe2(to_child, O_CLOEXEC) == 0 && pipe2(from_child, O_CLOEXEC) == 0, "no pipes");
    const std::vector<char*> argv = ExecArguments(arguments);
    pid_ = fork();
    RM_CHECK(pid_ >= 0, "cannot fork");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to_child[0], STDIN_FILENO);
      dup2(from_child[1], STDOUT_FILENO);
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    in_ = UniqueFd(to_child[1]);
    out_ = UniqueFd(from_child[0]);
    close(to_child[0]);
    close(from_child[1]);
  }

  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void Signal(int number) { kill(pid_, number); }

  // Until the thread that began it waits for something. False: it took too long.
  bool AwaitSleep() const {
    const auto deadline = steady_clock::now() + testing::kPatience;
    while (steady_clock::now() < deadline) {
      const auto stat = ReadFile(fmt::format("/proc/{}/stat", pid_));
      if (stat.ok() && stat->find(") S ") != std::string::npos) return true;
      std::this_thread::yield();
    }
    return false;
  }

  void Write(const std::string& text) {
    const absl::Status written =
        WriteAll(in_.get(), std::as_bytes(std::span(text)), "a child's input");
    EXPECT_TRUE(written.ok()) << written;
  }

  // The next line, or what there is of it when the deadline passes or the child ends.
  std::string ReadLine(milliseconds patience = testing::kPatience) {
    const auto deadline = steady_clock::now() + patience;
    std::string line;
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
      pollfd readable{out_.get(), POLLIN, 0};
      char c;
      if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) return line;
      if (read(out_.get(), &c, 1) != 1 || c == '\n') return line;
      line += c;
    }
  }

  // Skips lines until one starts so.
  std::string ReadUntil(const std::string& start, milliseconds patience) {
    const auto deadline = steady_clock::now() + patience;
    std::string line;
    do {
      line = ReadLine(std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
    } while (!line.empty() && line.compare(0, start.size(), start) != 0);
    return line;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
};

// These one after another, again and again, once every pair is connected; with `asks` when it is
// told to.
int RunCalls(Communicator& comm, const std::vector<testing::Call>& calls, bool asks) {
  const std::vector<size_t> ones(kWorld, 1);
  std::vector<float> all(kWorld);
  if (comm.AllToAll(std::vector<float>(kWorld), ones, all, ones, "meet").ok())
    std::cout << "connected" << std::endl;
  std::string word;
  if (asks) std::getline(std::cin, word);
  const size_t enough = calls.size() + 8;  // a single one, too, is repeated before it counts
  for (size_t step = 0;; ++step) {
    const absl::Status status = calls[step % calls.size()].run(comm);
    if (!status.ok()) {
      std::cout << "failed " << comm.suspect() << " " << Message(status) << std::endl;
      return 0;
    }
    if (step == enough) std::cout << "running" << std::endl;
  }
}

// A single operation, when it is told to.
int RunOne(Communicator& comm) {
  std::string word;
  std::getline(std::cin, word);
  std::cout << "begins" << std::endl;
  const absl::Status status = comm.Barrier("late");
  std::cout << (status.ok() ? "done" : Message(status)) << std::endl;
  return 0;
}

// All, where the mode is none of their names.
std::vector<testing::Call> CallsOf(const std::string& mode) {
  std::vector<testing::Call> calls = testing::AllCalls();
  const auto named = std::ranges::find(calls, mode, &testing::Call::name);
  if (named != calls.end()) return {*named};
  RM_CHECK(mode == "any" || mode == "connect", "no such mode");
  return calls;
}

// The body of a rank's process, whose mode is "ring", "ordered", "any", "connect", "one" or a
// call's name.
int RunRank(const std::string& mode, testing::Wires wires, int rank) {
  const auto listener = tcp::Listener::Open(testing::LoopbackAddress(rank));
  RM_CHECK(listener.ok(), "cannot listen");
  std::cout << (*listener)->address() << std::endl;
  CommunicatorOptions options;
  options.job = "test/multiproc";
  options.round = 1;
  options.rank = rank;
  options.key = "the key of round one";
  options.operation_timeout = kOperationTimeout;
  if (mode == "connect") options.connect_timeout = kOperationTimeout;
  if (mode == "one") {  // the last rank alone has little patience
    if (rank < kWorld - 1) options.operation_timeout = testing::kPatience;
    options.connect_timeout = options.operation_timeout;
  }
  options.transport = testing::ChoiceOf(wires, rank);
  options.encryption = testing::EncryptionOf(wires);
  for (int r = 0; r < kWorld; ++r) {
    std::string address;
    std::getline(std::cin, address);
    options.members.push_back({address, fmt::format("uid-{}", r)});
  }
  std::vector<testing::Call> calls;
  if (mode != "ring" && mode != "ordered" && mode != "one") calls = CallsOf(mode);
  if (calls.size() == 1) options.algorithm = calls.front().algorithm;
  const auto comm = Communicator::Create(options, **listener);
  RM_CHECK(comm.ok(), "cannot open the round");
  if (mode == "one") return RunOne(**comm);
  if (!calls.empty()) return RunCalls(**comm, calls, mode == "connect");
  const std::vector<float> in(200'000, 1.0f);
  std::vector<float> out(in.size());
  OrderedSum<float> sum(kWorld, in.size());
  RM_CHECK(sum.Add(rank, in).ok(), "cannot add");
  for (int step = 0;; ++step) {
    const absl::Status status = mode == "ring"
                                    ? (*comm)->Allreduce(Reduction::kSum, in, out, "gradient")
                                    : sum.Reduce(**comm, out, "gradient");
    if (!status.ok()) {
      std::cout << "failed " << (*comm)->suspect() << " " << Message(status) << std::endl;
      return 0;
    }
    if (step == 3) std::cout << "running" << std::endl;
  }
}

using Ranks = std::vector<std::unique_ptr<Child>>;

Ranks StartRanks(const std::string& mode, testing::Wires wires) {
  Ranks ranks;
  for (int rank = 0; rank < kWorld; ++rank) {
    ranks.push_back(std::make_unique<Child>(
        std::vector<std::string>{"multiproc", "--rank", mode,
                                 std::to_string(static_cast<int>(wires)), std::to_string(rank)}));
  }
  return ranks;
}

void TellAddresses(const Ranks& ranks) {
  std::string addresses;
  for (const auto& rank : ranks) addresses += rank->ReadLine() + "\n";
  for (const auto& rank : ranks) rank->Write(addresses);
}

// Ranks that have done some operations; none where they do not come to it.
Ranks RunRanks(const std::string& mode, testing::Wires wires) {
  Ranks ranks = StartRanks(mode, wires);
  TellAddresses(ranks);
  for (const auto& rank : ranks) {
    if (rank->ReadUntil("running", testing::kPatience) != "running") return {};
  }
  return ranks;
}

void ExpectSurvivorsName(const Ranks& ranks, int victim, milliseconds within,
                         const ::testing::Matcher<std::string>& operation) {
  const auto start = steady_clock::now();
  for (int rank = 0; rank < kWorld; ++rank) {
    if (rank == victim) continue;
    const std::string line = ranks[rank]->ReadUntil("failed", testing::kPatience);
    EXPECT_THAT(line, StartsWith(fmt::format("failed {} ", victim))) << "rank " << rank;
    EXPECT_THAT(line, HasSubstr(fmt::format("rank {} (", victim)));
    EXPECT_THAT(line, operation);
  }
  EXPECT_LT(steady_clock::now() - start, within);
}

// What was there before: other programs of this machine may share memory of the same kind.
std::set<std::string> SharedMemoryFiles() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, sizeof(shm::kNamePrefix) - 1, shm::kNamePrefix) == 0) names.insert(name);
  }
  return names;
}

class MultiprocTest : public ::testing::TestWithParam<std::tuple<const char*, testing::Wires>> {
 protected:
  void SetUp() override { ASSERT_FALSE(ranks_.empty()) << "the ranks do not run"; }

  void ExpectSurvivorsName(int victim, milliseconds within) {
    const bool any = std::string(std::get<0>(GetParam())) == "any";
    collectives::ExpectSurvivorsName(ranks_, victim, within,
                                     HasSubstr(any ? "(in operation " : "gradient"));
  }

  const std::set<std::string> before_ = SharedMemoryFiles();
  const Ranks ranks_ = RunRanks(std::get<0>(GetParam()), std::get<1>(GetParam()));
};

INSTANTIATE_TEST_SUITE_P(Schedules, MultiprocTest,
                         ::testing::Combine(::testing::Values("ring", "ordered", "any"),
                                            ::testing::ValuesIn(testing::kAllWires)),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  testing::NameOf(std::get<1>(info.param));
                         });

TEST_P(MultiprocTest, AKilledRankIsNamedByAllSurvivors) {
  ranks_[2]->Signal(SIGKILL);
  ExpectSurvivorsName(2, kSlack);
  // Every pair had mapped its memory by then, whose name went at once. Files of other programs come
  // and go meanwhile; what this round left would stay.
  const auto deadline = std::chrono::steady_clock::now() + testing::kPatience;
  for (const std::string& name : SharedMemoryFiles()) {
    if (before_.contains(name)) continue;
    const std::filesystem::path path = std::filesystem::path("/dev/shm") / name;
    while (std::filesystem::exists(path) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_FALSE(std::filesystem::exists(path)) << path;
  }
}

TEST_P(MultiprocTest, AStoppedRankIsNamedByAllSurvivorsWithinTheDeadline) {
  ranks_[1]->Signal(SIGSTOP);
  ExpectSurvivorsName(1, kOperationTimeout + kSlack);
}

TEST_P(MultiprocTest, AStoppedRankThatGoesOnLearnsThatTheRoundIsOver) {
  ranks_[1]->Signal(SIGSTOP);
  ExpectSurvivorsName(1, kOperationTimeout + kSlack);
  ranks_[1]->Signal(SIGCONT);
  EXPECT_THAT(ranks_[1]->ReadUntil("failed", testing::kPatience), StartsWith("failed "));
}

// An operation follows the other, so wherever the signal comes, it is in one or shortly before.
class AlgorithmsTest : public ::testing::TestWithParam<testing::Wires> {
 protected:
  void SignalInEach(int signal, milliseconds within) {
    const std::vector<testing::Call> calls = testing::AllCalls();
    std::atomic<size_t> next = 0;
    // Who is stopped is mostly waited for.
    testing::RunThreads(signal == SIGSTOP ? 3 * kRoundsAtOnce : kRoundsAtOnce, [&](int) {
      for (size_t i = next++; i < calls.size(); i = next++) {
        SCOPED_TRACE(calls[i].name);
        const int victim = static_cast<int>(i) % kWorld;
        const Ranks ranks = RunRanks(calls[i].name, GetParam());
        ASSERT_FALSE(ranks.empty());
        ranks[static_cast<size_t>(victim)]->Signal(signal);
        ExpectSurvivorsName(ranks, victim, within, ::testing::Truly([&](const std::string& line) {
                              return testing::IsNamedIn(line, calls[i], calls[i].name);
                            }));
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Wires, AlgorithmsTest,
                         ::testing::Values(testing::Wires::kShared, testing::Wires::kTcp),
                         [](const auto& info) { return testing::NameOf(info.param); });

TEST_P(AlgorithmsTest, AKilledRankIsNamedByAllSurvivorsInEach) {
  SignalInEach(SIGKILL, kSlack);
}

TEST_P(AlgorithmsTest, AStoppedRankIsNamedByAllSurvivorsInEach) {
  SignalInEach(SIGSTOP, kOperationTimeout + kSlack);
}

// A round that begins, and the relay around one of its ranks.
class Beginning {
 public:
  Beginning(testing::Wires wires, int victim) : victim_(victim) {
    ranks_ = StartRanks("connect", wires);
    for (const auto& rank : ranks_) {
      addresses_.push_back(rank->ReadLine());
      doors_.push_back(relay_.Open(addresses_.back()));
    }
  }

  // The ranks begin to connect when they have been told where the others are.
  void TellAddresses() {
    for (int rank = 0; rank < kWorld; ++rank) {
      std::string lines;
      for (int other = 0; other < kWorld; ++other) {
        const bool through = rank == victim_ || other == victim_;
        lines += (through ? doors_ : addresses_)[static_cast<size_t>(other)] + "\n";
      }
      ranks_[static_cast<size_t>(rank)]->Write(lines);
    }
  }

  // How much goes through the relay until all are connected. They do no more then.
  uint64_t CountBytes() {
    TellAddresses();
    for (const auto& rank : ranks_) EXPECT_EQ(rank->ReadLine(), "connected");
    return relay_.bytes();
  }

  // The victim is stopped when so much has gone through; with nothing before it opens the round.
  void StopAfter(uint64_t bytes) {
    if (bytes == 0) victim().Signal(SIGSTOP);
    TellAddresses();
    for (const auto& rank : ranks_) rank->Write("go on\n");
    EXPECT_TRUE(relay_.AwaitBytes(bytes, testing::kPatience));
    victim().Signal(SIGSTOP);
  }

  // Some may wait to be dialed by a rank that waits for the victim itself, and name that one.
  void ExpectSurvivorsNameTheVictim() {
    const auto start = steady_clock::now();
    for (int rank = 0; rank < kWorld; ++rank) {
      if (rank == victim_) continue;
      const std::string line =
          ranks_[static_cast<size_t>(rank)]->ReadUntil("failed", testing::kPatience);
      EXPECT_THAT(line, AnyOf(AllOf(StartsWith(fmt::format("failed {} ", victim_)),
                                    HasSubstr(fmt::format("rank {} (", victim_))),
                              AllOf(StartsWith("failed "), HasSubstr("has not connected"))))
          << "rank " << rank;
    }
    EXPECT_LT(steady_clock::now() - start, 2 * kOperationTimeout + kSlack);
    victim().Signal(SIGCONT);
    EXPECT_THAT(victim().ReadUntil("failed", testing::kPatience), StartsWith("failed "));
  }

 private:
  Child& victim() { return *ranks_[static_cast<size_t>(victim_)]; }

  const int victim_;
  testing::Relay relay_;
  Ranks ranks_;
  std::vector<std::string> addresses_;
  std::vector<std::string> doors_;
};

class BeginningTest : public ::testing::TestWithParam<testing::Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, BeginningTest,
                         ::testing::Values(testing::Wires::kShared, testing::Wires::kTcp,
                                           testing::Wires::kTls),
                         [](const auto& info) { return testing::NameOf(info.param); });

TEST_P(BeginningTest, ARankThatIsStoppedWhileRanksConnectIsNamedByAllSurvivors) {
  constexpr int kMoments = 8;
  std::atomic<int> next = 0;
  testing::RunThreads(kRoundsAtOnce, [&](int) {
    for (int moment = next++; moment < kMoments; moment = next++) {
      const int victim = moment % kWorld;
      const uint64_t all = Beginning(GetParam(), victim).CountBytes();
      Beginning round(GetParam(), victim);
      const uint64_t bytes = all * static_cast<uint64_t>(moment) / kMoments;
      SCOPED_TRACE(fmt::format("rank {} stopped after {} bytes of {}", victim, bytes, all));
      round.StopAfter(bytes);
      round.ExpectSurvivorsNameTheVictim();
    }
  });
}

// The last rank is stopped while it waits for the others to connect, which they do meanwhile, and
// goes on when its own patience has passed.
TEST_P(BeginningTest, ARankThatWasHeldUpItselfBlamesNobodyForThat) {
  const Ranks ranks = StartRanks("one", GetParam());
  TellAddresses(ranks);
  Child& last = *ranks.back();
  last.Write("go on\n");
  ASSERT_EQ(last.ReadLine(), "begins");
  ASSERT_TRUE(last.AwaitSleep());
  last.Signal(SIGSTOP);
  for (int rank = 0; rank < kWorld - 1; ++rank) {
    ranks[static_cast<size_t>(rank)]->Write("go on\n");
    ASSERT_EQ(ranks[static_cast<size_t>(rank)]->ReadLine(), "begins");
  }
  std::this_thread::sleep_for(kOperationTimeout * 7 / 6);
  last.Signal(SIGCONT);
  for (const auto& rank : ranks) EXPECT_EQ(rank->ReadLine(), "done");
}

}  // namespace
}  // namespace ringmaster::collectives

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--rank") {
    using ringmaster::collectives::testing::Wires;
    return ringmaster::collectives::RunRank(argv[2], static_cast<Wires>(std::stoi(argv[3])),
                                            std::stoi(argv[4]));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// Ranks as processes of their own, one of which is killed or stopped: the survivors name it.
//
// The test program starts itself again with `--rank` for each rank. A rank prints its address,
// reads everybody's, and reduces, or makes every operation there is, until it fails; each line that
// it prints is read here with a deadline.
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
#include "common/file.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/shm/segment.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWorld = testing::kCallWorld;
constexpr milliseconds kOperationTimeout = testing::kImpatience;
constexpr milliseconds kSlack{10000};  // for a busy machine

// A child process with pipes to its standard input and output.
class Child {
 public:
  explicit Child(const std::vector<std::string>& arguments) {
    int to_child[2];
    int from_child[2];
    RM_CHECK(pipe2(to_child, O_CLOEXEC) == 0 && pipe2(from_child, O_CLOEXEC) == 0, "no pipes");
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
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

// All operations one after another, again and again.
int RunAnyOperation(Communicator& comm) {
  const std::vector<testing::Call> calls = testing::AllCalls();
  for (size_t step = 0;; ++step) {
    const absl::Status status = calls[step % calls.size()].run(comm);
    if (!status.ok()) {
      std::cout << "failed " << comm.suspect() << " " << Message(status) << std::endl;
      return 0;
    }
    if (step == calls.size()) std::cout << "running" << std::endl;
  }
}

// The body of a rank's process.
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
  options.transport = testing::ChoiceOf(wires, rank);
  options.encryption = testing::EncryptionOf(wires);
  for (int r = 0; r < kWorld; ++r) {
    std::string address;
    std::getline(std::cin, address);
    options.members.push_back({address, fmt::format("uid-{}", r)});
  }
  const auto comm = Communicator::Create(options, **listener);
  RM_CHECK(comm.ok(), "cannot open the round");
  if (mode == "any") return RunAnyOperation(**comm);
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
  void SetUp() override {
    for (int rank = 0; rank < kWorld; ++rank) {
      ranks_.push_back(std::make_unique<Child>(std::vector<std::string>{
          "multiproc", "--rank", std::get<0>(GetParam()),
          std::to_string(static_cast<int>(std::get<1>(GetParam()))), std::to_string(rank)}));
    }
    std::string addresses;
    for (const auto& rank : ranks_) addresses += rank->ReadLine() + "\n";
    for (const auto& rank : ranks_) rank->Write(addresses);
    for (const auto& rank : ranks_) ASSERT_EQ(rank->ReadLine(), "running");
  }

  void ExpectSurvivorsName(int victim, milliseconds within) {
    const auto start = steady_clock::now();
    for (int rank = 0; rank < kWorld; ++rank) {
      if (rank == victim) continue;
      const std::string line = ranks_[rank]->ReadUntil("failed", testing::kPatience);
      EXPECT_THAT(line, StartsWith(fmt::format("failed {} ", victim))) << "rank " << rank;
      EXPECT_THAT(line, HasSubstr(fmt::format("rank {} (", victim)));
      EXPECT_THAT(line, HasSubstr(std::string(std::get<0>(GetParam())) == "any" ? "(in operation "
                                                                                : "gradient"));
    }
    EXPECT_LT(steady_clock::now() - start, within);
  }

  const std::set<std::string> before_ = SharedMemoryFiles();
  std::vector<std::unique_ptr<Child>> ranks_;
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

#include "tests/support/process.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace ringmaster::testing {
namespace {

using ::testing::Optional;

// A child has only the thread that forked: a lock that another one held, as an allocator's, is
// never let go there. The C library's allocator sees to its own, AddressSanitizer's does not.
TEST(ProcessTest, StartsWhileOtherThreadsAllocate) {
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&stop] {
      std::vector<std::unique_ptr<char[]>> kept(1000);
      for (size_t n = 0; !stop; ++n)
        kept[n % kept.size()] = std::make_unique<char[]>(size_t{8} << (n % 12));
    });
  }
  std::vector<std::string> command(3000, "word");
  command.front() = "true";
  for (int i = 0; i < 100; ++i) {
    Process process(command, {});
    const std::optional<int> exit_code = process.Wait();
    EXPECT_THAT(exit_code, Optional(0)) << "process " << i;
    if (exit_code != 0) break;
  }
  stop = true;
}

TEST(ProcessTest, PassesOnTheEnvironmentAndTheExitCode) {
  Process process({"sh", "-c", "echo \"$SOME_VARIABLE\"; exit 7"}, {{"SOME_VARIABLE", "a value"}});
  EXPECT_THAT(process.Line(), Optional(std::string("a value")));
  EXPECT_THAT(process.Wait(), Optional(7));
}

}  // namespace
}  // namespace ringmaster::testing

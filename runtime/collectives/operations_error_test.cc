// What a collective operation refuses, and how it names it.
#include <barrier>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;

// Two ranks that disagree about one part, of which only one knows that it is there.
TEST(OperationsErrorTest, LengthsOfAnAllToAllThatDisagreeAreNamed) {
  for (const size_t surplus : {size_t{1}, size_t{256}, size_t{1000}}) {
    Group group(3);
    group.options.segment_bytes = 1024;
    std::barrier everybody(3);
    group.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("meet").ok());
      everybody.arrive_and_wait();
      const std::vector<size_t> counts = {256, 0, 0};
      std::vector<size_t> receive(3, comm.rank() == 0 ? 256 : 0);
      std::vector<size_t> send = counts;
      if (comm.rank() == 2) send[1] = surplus;
      const std::vector<float> in(256 + send[1]);
      std::vector<float> out(comm.rank() == 0 ? 3 * 256 : 0);
      const absl::Status status = comm.AllToAll(in, send, out, receive, "exchange");
      everybody.arrive_and_wait();
      if (comm.rank() == 0 && status.ok()) return;  // it agrees with both, and may be through
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_NE(Message(status).find("\"exchange\""), std::string::npos) << status;
    });
  }
}

TEST(OperationsErrorTest, WrongArgumentsAreNamedAndDoNotFailTheRound) {
  Group group(2);
  group.Run([](Communicator& comm) {
    std::vector<float> four(4);
    std::vector<float> two(2);
    std::vector<int32_t> whole(4);
    const std::vector<size_t> halves = {2, 2};
    const std::vector<size_t> thirds = {1, 1, 2};
    const auto refused = [&](const absl::Status& status, const std::string& words) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(Message(status).find(words), std::string::npos) << status;
    };
    refused(comm.Allreduce(Reduction::kSum, four, whole, "x"),
            "x: the input is of float32, the result of int32");
    refused(comm.ReduceScatter(Reduction::kSum, four, thirds, two, "x"),
            "the number of parts is 3");
    refused(comm.ReduceScatter(Reduction::kSum, four, halves, four, "x"), "this rank's part is 4");
    refused(comm.Reduce(Reduction::kSum, 2, four, four, "x"), "root 2 is not in a world of 2");
    refused(comm.Gather(-1, two, halves, four, "x"), "root -1");
    refused(comm.Scatter(comm.rank(), two, halves, two, "x"), "the parts together is 2");
    refused(comm.AllToAll(four, thirds, four, halves, "x"), "the number of parts is 3");
    const std::vector<size_t> wrapping = {2, ~size_t{0}};
    const std::vector<size_t> around = {~size_t{0}, 2};
    refused(comm.Gather(0, two, comm.rank() == 0 ? wrapping : around, two, "x"), "too long");
    EXPECT_TRUE(comm.Barrier("still alive").ok());
  });
}

}  // namespace
}  // namespace ringmaster::collectives

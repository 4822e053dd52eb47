// What transports promise of memory that is sent from, on every kind of wire.
#include "runtime/collectives/transport/transport.h"

#include <algorithm>
#include <cstdint>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;

class TransportTest : public ::testing::TestWithParam<testing::Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, TransportTest, ::testing::ValuesIn(testing::kAllWires),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

Operation Named(const char* name) {
  Operation operation;
  operation.name = name;
  return operation;
}

// In pieces, and over what is combined with last.
TEST_P(TransportTest, AMessageIsCombinedWithTwoArraysAtOnce) {
  Group group(2, GetParam());
  group.Run([&](Communicator& comm) {
    const std::vector<float> theirs(100'001, 1e-8f);
    const std::vector<float> mine(theirs.size(), 1.0f);
    std::vector<float> sum(theirs.size(), -1.0f);
    const absl::Status status = comm.Run(Named("three"), [&](Transport& transport) {
      if (comm.rank() == 0) {
        transport.PostSend(1, std::as_bytes(std::span(theirs)));
        return transport.Finish();
      }
      return transport.Wait(
          transport.PostCombine(0, {.combiner = {Reduction::kSum, ElementType::kF32},
                                    .mine = std::as_bytes(std::span(mine)),
                                    .into = std::as_writable_bytes(std::span(sum)),
                                    .outer = std::as_bytes(std::span(sum))}));
    });
    EXPECT_TRUE(status.ok()) << status;
    if (comm.rank() == 0) return;
    EXPECT_EQ(sum, std::vector<float>(sum.size(), 0.0f));  // -1 + (1 + 1e-8)
  });
}

TEST_P(TransportTest, BytesMayChangeOnceTrySendsSaysThatTheyAreSent) {
  constexpr size_t kLittle = 10'000;
  Group group(2, GetParam());
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(comm.Barrier("connect").ok()) << comm.status();
    std::vector<std::byte> data(kLittle, std::byte{1});
    const absl::Status status = comm.Run(Named("little"), [&](Transport& transport) {
      if (comm.rank() == 1) return transport.Wait(transport.PostReceive(0, data));
      if (!transport.PostSend(1, data)) {
        const absl::StatusOr<bool> sent = transport.TrySends();
        if (!sent.ok()) return sent.status();
        EXPECT_TRUE(*sent);
      }
      std::ranges::fill(data, std::byte{2});
      return transport.Finish();
    });
    EXPECT_TRUE(status.ok()) << status;
    const std::byte expected{comm.rank() == 1 ? uint8_t{1} : uint8_t{2}};
    EXPECT_EQ(data, std::vector<std::byte>(kLittle, expected));
  });
}

TEST_P(TransportTest, TrySendsSaysThatNothingIsSentWhereThereIsNoConnectionYet) {
  Group group(2, GetParam());
  group.Run([&](Communicator& comm) {
    std::vector<std::byte> data(1, std::byte{1});
    const absl::Status status = comm.Run(Named("first"), [&](Transport& transport) {
      if (comm.rank() == 1) return transport.Wait(transport.PostReceive(0, data));
      EXPECT_FALSE(transport.PostSend(1, data));
      const absl::StatusOr<bool> sent = transport.TrySends();
      if (!sent.ok()) return sent.status();
      EXPECT_FALSE(*sent);
      return transport.Finish();
    });
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_P(TransportTest, TrySendsSaysThatMoreThanIsUnderWayIsNotSentAndDoesNotWait) {
  constexpr size_t kMoreThanIsUnderWay = size_t{80} << 20;
  Group group(2, GetParam());
  std::promise<void> tried;
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(comm.Barrier("connect").ok()) << comm.status();
    std::vector<std::byte> data(kMoreThanIsUnderWay, std::byte{1});
    const absl::Status status = comm.Run(Named("much"), [&](Transport& transport) {
      if (comm.rank() == 1) {
        tried.get_future().wait_for(testing::kPatience);
        return transport.Wait(transport.PostReceive(0, data));
      }
      EXPECT_FALSE(transport.PostSend(1, data));
      const absl::StatusOr<bool> sent = transport.TrySends();
      tried.set_value();
      if (!sent.ok()) return sent.status();
      EXPECT_FALSE(*sent);
      return transport.Finish();
    });
    EXPECT_TRUE(status.ok()) << status;
  });
}

}  // namespace
}  // namespace ringmaster::collectives

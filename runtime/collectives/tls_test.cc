// Collectives over connections with TLS: the same numbers, nothing to be read on the way, and no
// byte changed without an error that says where.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"

namespace ringmaster::collectives {
namespace {

using ::testing::AllOf;
using testing::Call;
using testing::Group;
using ::testing::HasSubstr;
using testing::kCallWorld;
using testing::Relay;
using testing::Wires;

class TlsTest : public ::testing::TestWithParam<Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, TlsTest,
                         ::testing::Values(Wires::kTls, Wires::kShared, Wires::kMixed),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

// Where ranks share memory their connection is encrypted, and their data is in the memory.
TEST_P(TlsTest, EveryCallHasTheReferencesNumbers) {
  Group group(kCallWorld, GetParam());
  group.options.encryption = Encryption::kTls;
  group.options.segment_bytes = testing::kCallSegmentBytes;
  for (const Call& call : testing::AllCalls()) {
    group.options.algorithm = call.algorithm;
    group.Run([&](Communicator& comm) {
      const absl::Status status = call.run(comm);
      EXPECT_TRUE(status.ok()) << call.name << ": " << status;
    });
  }
}

// More than sockets take, both ways at once.
TEST(TlsGroupTest, LongMessagesPassOneAnother) {
  constexpr size_t kCount = 3'000'000;
  Group group(3, Wires::kTls);
  group.Run([&](Communicator& comm) {
    std::vector<float> data(kCount);
    for (size_t i = 0; i < kCount; ++i)
      data[i] = static_cast<float>((i + static_cast<size_t>(comm.rank())) % 1000);
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, data, data, "long").ok()) << comm.status();
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(data[i], static_cast<float>(i % 1000 + (i + 1) % 1000 + (i + 2) % 1000)) << i;
    }
  });
}

// Two ranks whose connection goes through a relay.
class RelayedTlsTest : public ::testing::Test {
 protected:
  RelayedTlsTest() {
    group_.options.members[1].address = relay_.Open(group_.options.members[1].address);
  }

  // What was on the wire while a text was broadcast.
  std::string Recorded(Encryption encryption, const std::string& text) {
    relay_.Pass();
    relay_.Record();
    group_.options.encryption = encryption;
    group_.Run([&](Communicator& comm) {
      std::vector<std::byte> bytes(text.size());
      if (comm.rank() == 0) std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin());
      ASSERT_TRUE(comm.Broadcast(0, Elements(ElementType::kU8, bytes), "name of it").ok())
          << comm.status();
      EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(text))));
    });
    return relay_.recorded();
  }

  // Sums on both ranks, of which one bit is turned around on the way.
  struct Outcome {
    absl::Status status;
    bool right = false;
  };
  std::vector<Outcome> SumWithFlip(uint64_t at) {
    relay_.Pass();
    relay_.Flip(at);
    std::vector<Outcome> outcomes(2);
    group_.Run([&](Communicator& comm) {
      std::vector<float> data(kCount, static_cast<float>(1 + comm.rank()));
      const absl::Status status = comm.Allreduce(Reduction::kSum, data, data, "gradient");
      outcomes[static_cast<size_t>(comm.rank())] = {status,
                                                    data == std::vector<float>(kCount, 3.0f)};
    });
    return outcomes;
  }

  static constexpr size_t kCount = 10'000;
  Group group_{2, Wires::kTcp};
  Relay relay_;
};

TEST_F(RelayedTlsTest, NothingOfTheDataIsReadableOnTheWire) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += fmt::format("weight {} of the layer; ", i);
  const std::string plain = Recorded(Encryption::kNone, text);
  for (const char* part : {"weight 777 of the layer", "name of it"})
    EXPECT_NE(plain.find(part), std::string::npos) << "the relay would not have seen " << part;
  const std::string encrypted = Recorded(Encryption::kTls, text);
  EXPECT_GT(encrypted.size(), text.size());
  for (const char* part : {"weight", "the layer", "name of it"})
    EXPECT_EQ(encrypted.find(part), std::string::npos) << part;
}

TEST_F(RelayedTlsTest, AByteThatIsChangedInTheDataEndsTheRoundNamingThePeer) {
  // Both handshakes take less than 2 KB, and then comes a record of 16.
  relay_.Flip(9000);
  group_.options.encryption = Encryption::kTls;
  group_.Run([&](Communicator& comm) {
    std::vector<float> data(kCount, 1.0f);
    absl::Status status = comm.Broadcast(0, data, "weights");
    if (comm.rank() == 1) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_EQ(comm.suspect(), 0);
      EXPECT_THAT(Message(status),
                  AllOf(HasSubstr("rank 0 ("),
                        HasSubstr("failed in TLS: decryption failed or bad record mac"),
                        HasSubstr("\"weights\"")));
      return;
    }
    if (status.ok()) status = comm.Barrier("after");
    EXPECT_EQ(comm.suspect(), 1);
    EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 1 ("), HasSubstr("failed in TLS: "),
                                       HasSubstr("alert bad record mac")));
  });
}

// The first messages of the handshake carry no data, and a changed one may look like a stranger's.
TEST_F(RelayedTlsTest, AByteThatIsChangedAnywhereChangesNoNumber) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  group_.options.encryption = Encryption::kTls;
  for (const Outcome& outcome : SumWithFlip(UINT64_MAX / 2)) ASSERT_TRUE(outcome.right);
  const uint64_t all = relay_.bytes();
  group_.options.connect_timeout = testing::kImpatience;
  group_.options.operation_timeout = testing::kImpatience;
  for (int trial = 0; trial < 12; ++trial) {
    // Half of them in the handshakes.
    const uint64_t at = random() % (trial % 2 == 0 ? all : 1000);
    SCOPED_TRACE(fmt::format("byte {} of {}", at, all));
    const std::vector<Outcome> outcomes = SumWithFlip(at);
    for (int rank = 0; rank < 2; ++rank) {
      const Outcome& outcome = outcomes[static_cast<size_t>(rank)];
      if (outcome.status.ok()) {
        EXPECT_TRUE(outcome.right) << "rank " << rank;
      } else {
        EXPECT_THAT(Message(outcome.status), HasSubstr("rank "));
      }
    }
  }
}

TEST(TlsGroupTest, RanksOfWhichOneIsWithoutRefuseOneAnother) {
  for (const bool dialer_wants : {true, false}) {
    Group group(2, Wires::kTcp);
    // Rank 0, which dials, cannot tell rank 1 why it does not come.
    group.options.operation_timeout = testing::kImpatience;
    group.options.connect_timeout = testing::kImpatience;
    ++group.options.round;
    testing::RunThreads(2, [&](int rank) {
      CommunicatorOptions options = group.OptionsFor(rank);
      options.encryption = (rank == 0) == dialer_wants ? Encryption::kTls : Encryption::kNone;
      const auto comm = Communicator::Create(options, group.listener(rank));
      ASSERT_TRUE(comm.ok()) << comm.status();
      const absl::Status status = (*comm)->Barrier("b");
      if (rank == 1) {
        EXPECT_THAT(Message(status), HasSubstr("rank 0 ("));
        return;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ((*comm)->suspect(), 1);
      EXPECT_THAT(Message(status),
                  AllOf(HasSubstr("rank 1 ("),
                        HasSubstr(dialer_wants ? "wants TLS, where the other side is set to none"
                                               : "wants no TLS, where the other side is set to")));
    });
  }
}

}  // namespace
}  // namespace ringmaster::collectives

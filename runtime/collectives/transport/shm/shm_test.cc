// Shared memory between two ranks: the files, the messages, and how a group comes to use it.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/shm/channel.h"
#include "runtime/collectives/transport/shm/segment.h"

namespace ringmaster::collectives::shm {
namespace {

using ::testing::AllOf;
using testing::Group;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return "/dev/shm/" + name;
}

TEST(SegmentTest, IsOneMemoryUnderANameThatGoesAway) {
  const auto made = Segment::Make(8192);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto opened = Segment::Open((*made)->name(), 8192);
  ASSERT_TRUE(opened.ok()) << opened.status();
  (*made)->memory()[8191] = std::byte{7};
  EXPECT_EQ((*opened)->memory()[8191], std::byte{7});
  (*made)->Unlink();
  EXPECT_FALSE(std::filesystem::exists(PathOf((*made)->name())));
  (*opened)->memory()[0] = std::byte{9};
  EXPECT_EQ((*made)->memory()[0], std::byte{9});
}

TEST(SegmentTest, LeavesNoFileWhenItIsDropped) {
  std::string name;
  {
    const auto made = Segment::Make(4096);
    ASSERT_TRUE(made.ok()) << made.status();
    name = (*made)->name();
    EXPECT_TRUE(std::filesystem::exists(PathOf(name)));
  }
  EXPECT_FALSE(std::filesystem::exists(PathOf(name)));
}

TEST(SegmentTest, SaysThatThereIsNoRoom) {
  const auto made = Segment::Make(size_t{1} << 40);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted) << made.status();
  EXPECT_THAT(Message(made.status()), HasSubstr("/dev/shm has no room for 1099511627776 bytes"));
}

TEST(SegmentTest, OpensNothingButASegmentOfThatSize) {
  const auto made = Segment::Make(4096);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Segment::Open((*made)->name(), 8192).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const std::string name : {"", "x", "../../etc/passwd", "ringmaster-"})
    EXPECT_EQ(Segment::Open(name, 4096).status().code(), absl::StatusCode::kInvalidArgument);
  (*made)->Unlink();
  EXPECT_EQ(Segment::Open((*made)->name(), 4096).status().code(), absl::StatusCode::kNotFound);
}

TEST(SegmentTest, SweepsWhatAKilledMakerLeftAndNothingElse) {
  const auto alive = Segment::Make(4096);
  ASSERT_TRUE(alive.ok()) << alive.status();
  std::string left = (*alive)->name();
  std::reverse(left.begin() + static_cast<ptrdiff_t>(sizeof(kNamePrefix) - 1), left.end());
  const std::string strange = "ringmaster-" + std::to_string(getpid());
  for (const std::string& name : {left, strange})
    UniqueFd(open(PathOf(name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)).Reset();
  SweepAbandoned();
  EXPECT_FALSE(std::filesystem::exists(PathOf(left)));
  EXPECT_TRUE(std::filesystem::exists(PathOf(strange)));
  EXPECT_TRUE(std::filesystem::exists(PathOf((*alive)->name())));
  unlink(PathOf(strange).c_str());
}

class ChannelTest : public ::testing::Test {
 protected:
  static constexpr size_t kRing = Channel::kMinRing;

  ChannelTest() {
    auto segment = Segment::Make(Channel::SegmentBytes(kRing));
    EXPECT_TRUE(segment.ok()) << segment.status();
    auto other = Segment::Open((*segment)->name(), Channel::SegmentBytes(kRing));
    EXPECT_TRUE(other.ok()) << other.status();
    raw_ = (*segment)->memory();
    own_.allowed = {5, 1};
    own_.limit = 3;
    own_.group = 77;
    a_ = std::make_unique<Channel>(*std::move(segment), kRing, 0, Processors{});
    b_ = std::make_unique<Channel>(*std::move(other), kRing, 1, own_);
  }

  std::span<std::byte> raw_;
  Processors own_;
  std::unique_ptr<Channel> a_;
  std::unique_ptr<Channel> b_;
};

// Messages of every length around what fits a slot and the ring, both ways at once.
TEST_F(ChannelTest, CarriesMessagesOfEveryLengthBothWays) {
  std::vector<size_t> lengths;
  for (const size_t around : {size_t{0}, kInlineBytes, 2 * kLine, kRing, 3 * kRing}) {
    for (size_t by = 0; by <= 3; ++by) lengths.push_back(around + by);
  }
  for (int i = 0; i < 300; ++i) lengths.push_back(static_cast<size_t>(i) * 37 % 1000);
  const auto value = [](int side, size_t message, size_t i) {
    return static_cast<std::byte>(static_cast<size_t>(side) * 101 + message * 31 + i * 7 + i / 251);
  };
  testing::RunThreads(2, [&](int side) {
    Channel& mine = side == 0 ? *a_ : *b_;
    size_t sending = 0;
    size_t sent = 0;
    size_t receiving = 0;
    size_t received = 0;
    std::vector<std::byte> message;
    while (sending < lengths.size() || receiving < lengths.size()) {
      if (sending < lengths.size()) {
        message.resize(lengths[sending]);
        for (size_t i = 0; i < message.size(); ++i) message[i] = value(side, sending, i);
        if (mine.Send(sending, 5, message, &sent)) {
          ++sending;
          sent = 0;
        }
      }
      Channel::Piece piece;
      if (!mine.Peek(&piece)) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_TRUE(piece.sound);
      ASSERT_EQ(piece.sequence, receiving);
      ASSERT_EQ(piece.length, lengths[receiving]);
      for (const std::byte got : piece.bytes)
        ASSERT_EQ(got, value(1 - side, receiving, received++));
      mine.Take();
      if (received == lengths[receiving]) {
        ++receiving;
        received = 0;
      }
    }
  });
}

TEST_F(ChannelTest, TakesNoMoreThanThereIsRoomFor) {
  const std::vector<std::byte> message(3 * kRing);
  size_t sent = 0;
  EXPECT_FALSE(a_->Send(1, 1, message, &sent));
  EXPECT_EQ(sent, kRing);
  size_t small = 0;
  EXPECT_FALSE(a_->Send(1, 1, std::span(message).first(100), &small));
  for (Channel::Piece piece; b_->Peek(&piece);) b_->Take();
  EXPECT_FALSE(a_->Send(1, 1, message, &sent));
  EXPECT_EQ(sent, 2 * kRing);
}

TEST_F(ChannelTest, WakesASleeperOnceAndOnlyForNews) {
  size_t sent = 0;
  EXPECT_FALSE(a_->MustWake());
  b_->Doze();
  EXPECT_FALSE(a_->MustWake());
  EXPECT_TRUE(a_->Send(1, 1, {}, &sent));
  EXPECT_TRUE(a_->MustWake());
  EXPECT_TRUE(a_->Send(2, 1, {}, &sent));
  EXPECT_FALSE(a_->MustWake());
  b_->Doze();
  b_->Rise();
  EXPECT_TRUE(a_->Send(3, 1, {}, &sent));
  EXPECT_FALSE(a_->MustWake());
}

TEST_F(ChannelTest, SaysThatASideHasLeftItsProcessor) {
  EXPECT_FALSE(b_->IsOtherAway());
  a_->SetAway(true);
  EXPECT_TRUE(b_->IsOtherAway());
  EXPECT_FALSE(a_->IsOtherAway());
  a_->SetAway(false);
  EXPECT_FALSE(b_->IsOtherAway());
  a_->Doze();
  EXPECT_TRUE(b_->IsOtherAway());
  a_->Rise();
  EXPECT_FALSE(b_->IsOtherAway());
}

TEST_F(ChannelTest, DescribesWhatTheOtherSideDoes) {
  Operation operation;
  operation.kind = OperationKind::kBroadcast;
  operation.type = ElementType::kF16;
  operation.count = 12;
  operation.name = "conv1\n/weight";
  operation.note = "from rank 2";
  a_->Describe(7, 1, operation, "rows");
  EXPECT_EQ(b_->TheirDescription(7),
            "broadcast of 12 float16 \"conv1?/weight\", from rank 2, in group \"rows\"");
  EXPECT_EQ(b_->TheirDescription(8), "another operation");
  a_->Describe(8, 1, operation, "rows");
  EXPECT_THAT(b_->TheirDescription(8), HasSubstr("12 float16"));
  operation.count = 13;
  a_->Describe(9, 2, operation, "rows");
  EXPECT_THAT(b_->TheirDescription(9), HasSubstr("13 float16"));
}

TEST_F(ChannelTest, GivesNoDescriptionThatIsHalfOfOneOperationAndHalfOfTheNext) {
  constexpr uint64_t kOperations = 100'000;
  const auto name = [](uint64_t number) {
    return std::string(kMaxName - number % 8, static_cast<char>('a' + number % 26));
  };
  std::atomic<uint64_t> newest = 1;
  std::thread writer([&] {
    Operation operation;
    operation.kind = OperationKind::kBroadcast;
    for (uint64_t number = 1; number <= kOperations; ++number) {
      const std::string text = name(number);
      operation.count = number;
      operation.name = text;
      operation.note = text;
      newest = number;
      a_->Describe(number, number, operation, text);
    }
  });
  for (uint64_t number = 0; number < kOperations;) {
    number = newest;
    const std::string text = b_->TheirDescription(number);
    if (text == "another operation") continue;
    const std::string part = name(number);
    EXPECT_EQ(text, "broadcast of " + std::to_string(number) + " uint8 \"" + part + "\", " + part +
                        ", in group \"" + part + '"');
    if (HasFailure()) break;
  }
  writer.join();
  EXPECT_THAT(b_->TheirDescription(kOperations), HasSubstr("broadcast of"));
}

TEST_F(ChannelTest, SaysWhatTheOtherSideMayRunOn) {
  EXPECT_EQ(a_->TheirProcessors(), own_);
}

// Whatever the other process writes, no byte outside the rings is touched.
TEST_F(ChannelTest, SurvivesGarbage) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    for (size_t i = 0; i < 2 * sizeof(Side); ++i) raw_[i] = static_cast<std::byte>(random());
    Side& theirs = reinterpret_cast<Side*>(raw_.data())[1];
    for (uint64_t i = 0; i < kSlots; ++i) theirs.slots[i].number = i + 1;
    Channel victim(*Segment::Make(Channel::SegmentBytes(kRing)), kRing, 0, Processors{});
    std::memcpy(victim.segment().memory().data(), raw_.data(), raw_.size());
    Channel::Piece piece;
    for (int taken = 0; taken < 64 && victim.Peek(&piece) && piece.sound; ++taken) {
      ASSERT_LE(piece.bytes.size(), kRing);
      EXPECT_GE(std::count(piece.bytes.begin(), piece.bytes.end(), std::byte{0}), 0);
      victim.Take();
    }
    size_t sent = 0;
    victim.Send(1, 1, std::vector<std::byte>(10 * kRing), &sent);
    victim.TheirDescription(theirs.description.sequence);
    victim.TheirProcessors();
  }
}

absl::Status Sum(Communicator& comm) {
  std::vector<float> data(20'000, 1.0f);
  return comm.Allreduce(Reduction::kSum, data, data, "x");
}

TEST(SharedMemoryTest, IsFoundByItselfOnOneMachine) {
  Group group(3);
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(Sum(comm).ok());
    EXPECT_EQ(comm.stats().sharing_peers, 2u);
  });
}

// The memory that two ranks of this process share, as a third process would reach it that reads and
// writes where it should not.
class Intruder {
 public:
  static constexpr size_t kBytes = 2 * sizeof(Side);

  Intruder() : memory_(open("/proc/self/mem", O_RDWR | O_CLOEXEC)) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; at_ == 0 && std::getline(maps, line);) {
      if (line.find(PathOf(kNamePrefix)) != std::string::npos) at_ = std::stoll(line, nullptr, 16);
    }
    EXPECT_NE(at_, 0) << "no shared memory is mapped";
  }
  ~Intruder() { close(memory_); }

  std::vector<uint64_t> Numbers() {
    EXPECT_EQ(pread(memory_, sides_.get(), kBytes, at_), static_cast<ssize_t>(kBytes));
    std::vector<uint64_t> numbers;
    for (const Side& side : std::span(sides_.get(), 2)) {
      for (const Slot& slot : side.slots) numbers.push_back(slot.number.load());
    }
    return numbers;
  }

  // All slots. With `news` those that were not published `before` look as if they were.
  void Damage(const std::vector<uint64_t>& before, bool news, unsigned seed) {
    std::mt19937 random(seed);
    Numbers();
    for (size_t i = 0; i < before.size(); ++i) {
      Slot& slot = sides_[i / kSlots].slots[i % kSlots];
      slot.sequence = random();
      slot.tag = random();
      slot.length = static_cast<uint32_t>(random());
      slot.piece = static_cast<uint32_t>(random());
      const uint64_t next = before[i] == 0 ? i % kSlots + 1 : before[i] + kSlots;
      slot.number = news ? next : random();
    }
    for (size_t side = 0; side < 2; ++side) {
      const auto place = at_ + static_cast<off_t>(side * sizeof(Side));
      const size_t bytes = sizeof(sides_[side].slots);
      EXPECT_EQ(pwrite(memory_, sides_[side].slots, bytes, place), static_cast<ssize_t>(bytes));
    }
  }

 private:
  const int memory_;
  off_t at_ = 0;
  const std::unique_ptr<Side[]> sides_ = std::make_unique<Side[]>(2);
};

TEST(SharedMemoryTest, ThatIsDamagedEndsTheRoundAndNamesTheOtherRank) {
  const unsigned seed = std::random_device{}();
  for (const bool news : {true, false}) {
    const std::string trace = fmt::format("seed {}, {}: ", seed, news ? "with news" : "without");
    Group group(2);
    group.options.operation_timeout = testing::kImpatience;
    std::barrier both(2);
    std::barrier begin(2);
    group.Run([&](Communicator& comm) {
      ASSERT_TRUE(Sum(comm).ok());
      both.arrive_and_wait();
      if (comm.rank() == 0) {
        Intruder intruder;
        const std::vector<uint64_t> before = intruder.Numbers();
        begin.arrive_and_wait();
        const auto deadline = std::chrono::steady_clock::now() + testing::kPatience;
        while (intruder.Numbers() == before && std::chrono::steady_clock::now() < deadline)
          std::this_thread::yield();  // until the other has sent something
        intruder.Damage(before, news, seed);
      } else {
        begin.arrive_and_wait();
      }
      absl::Status status = Sum(comm);
      // What one of them needs may have come whole, written over the damage.
      if (status.ok()) status = comm.Barrier("after");
      EXPECT_FALSE(status.ok()) << trace;
      EXPECT_THAT(Message(status), HasSubstr(fmt::format("rank {} (", 1 - comm.rank()))) << trace;
      EXPECT_GE(comm.suspect(), 0) << trace << status;
    });
  }
}

TEST(SharedMemoryTest, IsLeftAloneByARankThatIsSetToTcp) {
  Group group(3, testing::Wires::kMixed);
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(Sum(comm).ok());
    EXPECT_EQ(comm.stats().sharing_peers, comm.rank() == 0 ? 0u : 1u);
  });
}

TEST(SharedMemoryTest, FallsBackToTcpWhereThereIsNoRoom) {
  Group group(2);
  group.options.shared_memory_bytes = size_t{1} << 39;
  group.Run([](Communicator& comm) {
    EXPECT_TRUE(Sum(comm).ok());
    EXPECT_EQ(comm.stats().sharing_peers, 0u);
  });
}

// Of three ranks the middle one makes the memory of one of its two pairs.
TEST(SharedMemoryTest, FallsBackToTcpForThePairAloneThatFindsNoRoom) {
  Group group(3);
  ++group.options.round;
  std::vector<uint64_t> sharing(3);
  ::testing::internal::CaptureStderr();
  testing::RunThreads(3, [&](int rank) {
    CommunicatorOptions options = group.OptionsFor(rank);
    if (rank == 1) options.shared_memory_bytes = size_t{1} << 39;
    const auto comm = Communicator::Create(options, group.listener(rank));
    ASSERT_TRUE(comm.ok()) << comm.status();
    for (int lap = 0; lap < 3; ++lap) {
      std::vector<float> data(20'011, static_cast<float>(rank));
      ASSERT_TRUE((*comm)->Allreduce(Reduction::kSum, data, data, "x").ok()) << (*comm)->status();
      ASSERT_EQ(data, std::vector<float>(data.size(), 3.0f));
    }
    sharing[static_cast<size_t>(rank)] = (*comm)->stats().sharing_peers;
    ASSERT_TRUE((*comm)->Barrier("end").ok());
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("no shared memory with a rank of the same machine: its data goes "
                              "over TCP"),
                    HasSubstr("/dev/shm has no room"), HasSubstr("MiB for the 3 ranks")));
  EXPECT_EQ(sharing[1], 1U);
  EXPECT_EQ(sharing[0] + sharing[1] + sharing[2], 4U) << "two of three pairs";
}

TEST(SharedMemoryTest, SaysWhatToDoWhereItIsWantedAndThereIsNoRoom) {
  Group group(2);
  group.options.shared_memory_bytes = size_t{1} << 39;
  group.options.transport = TransportChoice::kSharedMemory;
  group.Run([](Communicator& comm) {
    const absl::Status status = Sum(comm);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("/dev/shm has no room"),
                                       HasSubstr("emptyDir volume of medium Memory")));
  });
}

TEST(SharedMemoryTest, FailsWhereItIsWantedAndTheOtherRankIsSetToTcp) {
  Group group(2);
  ++group.options.round;
  testing::RunThreads(2, [&](int rank) {
    CommunicatorOptions options = group.OptionsFor(rank);
    options.transport = rank == 0 ? TransportChoice::kTcp : TransportChoice::kSharedMemory;
    const auto comm = Communicator::Create(options, group.listener(rank));
    ASSERT_TRUE(comm.ok());
    const absl::Status status = Sum(**comm);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(Message(status), HasSubstr("set to TCP"));
  });
}

// With more ranks than processors whoever waits must let the others run, and sleep.
TEST(SharedMemoryTest, CarriesManyRanksWithSmallRings) {
  Group group(9);
  group.options.shared_memory_bytes = Channel::kMinRing;
  group.Run([](Communicator& comm) {
    for (int lap = 0; lap < 5; ++lap) {
      std::vector<float> data(20'011, static_cast<float>(comm.rank()));
      ASSERT_TRUE(comm.Allreduce(Reduction::kSum, data, data, "x").ok()) << comm.status();
      ASSERT_EQ(data, std::vector<float>(data.size(), 36.0f));
    }
  });
}

}  // namespace
}  // namespace ringmaster::collectives::shm

// What one rank writes once for several: places of the board, and the channels that tell of them.
#include "runtime/collectives/transport/shm/board.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/shm/channel.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::shm {
namespace {

using ::testing::ElementsAreArray;
using testing::Group;

constexpr size_t kPiece = kMaxPiece;

std::vector<std::byte> Bytes(size_t count, unsigned from) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(from + i * 7);
  return bytes;
}

BoardPlace NothingIsHeld() {
  return kHoldsNothing;
}

TEST(BoardTest, GivesAPlaceAnewOnlyWhenNoReaderHoldsIt) {
  auto board = *Board::Make(4 * kPiece);
  const auto bytes = Bytes(kPiece, 1);
  std::vector<BoardPlace> places;
  for (int i = 0; i < 4; ++i) places.push_back(board->Write(bytes, NothingIsHeld).value());
  EXPECT_THAT(places, ElementsAreArray({0 * kPiece, 1 * kPiece, 2 * kPiece, 3 * kPiece}));
  BoardPlace held = places[0];
  const auto oldest = [&] { return held; };
  EXPECT_FALSE(board->Write(bytes, oldest)) << "the first place is still being read";
  EXPECT_FALSE(board->Write(Bytes(1, 0), oldest)) << "however small";
  held = places[1];
  EXPECT_EQ(board->Write(bytes, oldest), 4 * kPiece);
  EXPECT_FALSE(board->Write(bytes, oldest));
  held = kHoldsNothing;
  EXPECT_EQ(board->Write(bytes, oldest), 5 * kPiece);
}

TEST(BoardTest, AsksWhatIsHeldOnlyWhereItKnowsOfNoRoom) {
  auto board = *Board::Make(4 * kPiece);
  int asked = 0;
  const auto oldest = [&] {
    ++asked;
    return kHoldsNothing;
  };
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(board->Write(Bytes(kPiece, 1), oldest));
  EXPECT_EQ(asked, 3) << "once for each time around";
}

TEST(BoardTest, LaysAPieceThatDoesNotFitBeforeItsEndAtItsBeginning) {
  auto board = *Board::Make(2 * kPiece);
  ASSERT_EQ(board->Write(Bytes(kPiece, 1), NothingIsHeld), 0U);
  ASSERT_EQ(board->Write(Bytes(100, 1), NothingIsHeld), kPiece);
  EXPECT_EQ(board->Write(Bytes(kPiece, 1), NothingIsHeld), 2 * kPiece);
  EXPECT_EQ(board->Write(Bytes(kPiece, 1), NothingIsHeld), 3 * kPiece);
}

constexpr size_t kRing = Channel::kMinRing;

// The two sides of a channel, of which the first has the board, if there is one.
std::array<std::unique_ptr<Channel>, 2> MakeChannel(const Board* board) {
  auto made = *Segment::Make(Channel::SegmentBytes(kRing));
  auto opened = *Segment::Open(made->name(), Channel::SegmentBytes(kRing));
  return {std::make_unique<Channel>(std::move(made), kRing, 0, Processors{}, board),
          std::make_unique<Channel>(std::move(opened), kRing, 1, Processors{})};
}

// A writer and its readers, each with a channel of its own.
class ReadersTest : public ::testing::Test {
 protected:
  static constexpr int kReaders = 3;

  ReadersTest() : board_(*Board::Make(4 * kPiece)) {
    for (int i = 0; i < kReaders; ++i) {
      auto [writer, reader] = MakeChannel(board_.get());
      writers_.push_back(std::move(writer));
      readers_.push_back(std::move(reader));
      readers_.back()->ReadTheirBoard();
    }
  }

  BoardPlace Oldest() const {
    BoardPlace oldest = kHoldsNothing;
    for (const auto& writer : writers_) oldest = std::min(oldest, writer->HeldOnBoard());
    return oldest;
  }

  std::unique_ptr<Board> board_;
  std::vector<std::unique_ptr<Channel>> writers_;
  std::vector<std::unique_ptr<Channel>> readers_;
};

TEST_F(ReadersTest, KnowWhoHasMappedTheBoard) {
  const auto [writer, reader] = MakeChannel(board_.get());
  EXPECT_EQ(writer->TheirUseOfBoard(), BoardUse::kUnknown);
  reader->ReadTheirBoard();
  EXPECT_EQ(writer->TheirUseOfBoard(), BoardUse::kReads);
}

TEST_F(ReadersTest, DoNotMapABoardThatIsGone) {
  const auto [writer, reader] = MakeChannel(board_.get());
  board_->Unlink();
  reader->ReadTheirBoard();
  EXPECT_EQ(writer->TheirUseOfBoard(), BoardUse::kCannot);
}

TEST_F(ReadersTest, HoldAPlaceUntilTheyHaveTakenWhatLiesThere) {
  EXPECT_EQ(Oldest(), kHoldsNothing);
  const BoardPlace place = board_->Write(Bytes(100, 5), NothingIsHeld).value();
  writers_[0]->SendOnBoard(1, 2, 100, place, 100);
  writers_[1]->SendOnBoard(1, 2, 100, place, 100);
  EXPECT_EQ(Oldest(), place);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Oldest(), place);
    Channel::Piece piece;
    ASSERT_TRUE(readers_[static_cast<size_t>(i)]->Peek(&piece));
    EXPECT_TRUE(piece.sound);
    EXPECT_THAT(piece.bytes, ElementsAreArray(Bytes(100, 5)));
    readers_[static_cast<size_t>(i)]->Take();
  }
  EXPECT_EQ(Oldest(), kHoldsNothing);
}

// Messages for some of the readers on the board and for one in its slot, in any mixture; readers
// read when it pleases them.
TEST_F(ReadersTest, GetEveryMessageWholeAndInOrder) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::deque<std::vector<std::byte>>> due(kReaders);
  size_t on_board = 0, without_room = 0;
  const auto read = [&](size_t r) {
    Channel::Piece piece;
    while (readers_[r]->Peek(&piece)) {
      ASSERT_TRUE(piece.sound);
      ASSERT_FALSE(due[r].empty());
      ASSERT_THAT(piece.bytes, ElementsAreArray(due[r].front()));
      due[r].pop_front();
      readers_[r]->Take();
    }
  };
  for (unsigned lap = 0; lap < 3000; ++lap) {
    const bool large = random() % 2 == 0;
    const auto bytes = Bytes(1 + random() % (large ? kPiece : 1000), lap);
    if (const unsigned who = random() % (1U << kReaders); random() % 4 > 0) {
      const bool has_slots = std::ranges::all_of(writers_, &Channel::HasRoomForBoard);
      const auto place = has_slots ? board_->Write(bytes, [&] { return Oldest(); }) : std::nullopt;
      for (size_t r = 0; place && r < kReaders; ++r) {
        if ((who >> r & 1) == 0) continue;
        writers_[r]->SendOnBoard(lap, 1, bytes.size(), *place, bytes.size());
        due[r].push_back(bytes);
      }
      ++(place ? on_board : without_room);
    } else {
      const size_t r = who % kReaders;
      const auto few = Bytes(1 + random() % kInlineBytes, lap);
      size_t sent = 0;
      if (writers_[r]->Send(lap, 1, few, &sent)) due[r].push_back(few);
    }
    if (random() % 3 == 0) read(random() % kReaders);
    if (HasFatalFailure()) return;
  }
  for (size_t r = 0; r < kReaders; ++r) read(r);
  for (const auto& left : due) EXPECT_TRUE(left.empty());
  EXPECT_GT(on_board, 500U);
  EXPECT_GT(without_room, 100U);
}

// Whatever a slot says, nothing outside the board is read; nor where none is mapped.
TEST_F(ReadersTest, RefuseAPlaceThatIsNotOnTheBoard) {
  Channel::Piece piece;
  writers_[0]->SendOnBoard(1, 1, 64, 4 * kPiece - 63, 64);
  ASSERT_TRUE(readers_[0]->Peek(&piece));
  EXPECT_FALSE(piece.sound);
  writers_[1]->SendOnBoard(1, 1, 64, ~BoardPlace{0}, 8 * kPiece);
  ASSERT_TRUE(readers_[1]->Peek(&piece));
  EXPECT_FALSE(piece.sound);
  const auto [writer, reader] = MakeChannel(nullptr);
  writer->SendOnBoard(1, 1, 64, 0, 64);
  ASSERT_TRUE(reader->Peek(&piece));
  EXPECT_FALSE(piece.sound);
}

// Messages that a rank posts for all others at once, through the transport.
class ForSeveralTest : public ::testing::Test {
 protected:
  using Body = std::function<absl::Status(Transport&)>;

  // Runs it on all ranks of `group`, when all pairs have settled how their data goes.
  static void Run(Group& group, const Body& body) {
    std::barrier everybody(static_cast<ptrdiff_t>(group.options.members.size()));
    group.Run([&](Communicator& comm) {
      testing::Meet(comm, everybody);
      ASSERT_TRUE(RunOn(comm, body).ok()) << comm.status();
    });
  }
  static absl::Status RunOn(Communicator& comm, const Body& body) {
    Operation operation;
    operation.kind = OperationKind::kBroadcast;
    operation.name = "for several";
    return comm.Run(operation, [&](Transport& transport) { return body(transport); });
  }

  static std::vector<int> All(const Transport& transport) {
    std::vector<int> all(static_cast<size_t>(transport.world()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // Rank 0 has one message for all; each of them looks at what it got.
  static absl::Status FromFirst(Transport& transport, size_t count, bool* copied) {
    const auto bytes = Bytes(count, 3);
    if (transport.rank() == 0) {
      *copied = transport.PostSendToEach(All(transport), bytes);
      return transport.Finish();
    }
    std::vector<std::byte> got(count);
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(0, got)));
    EXPECT_EQ(got, bytes);
    return absl::OkStatus();
  }
};

// The rings between two ranks are too small for it.
TEST_F(ForSeveralTest, AMessageIsCopiedAtOnceWhereItIsForMoreThanOneOther) {
  for (const int world : {2, 3, 4}) {
    Group group(world);
    group.options.shared_memory_bytes = Channel::kMinRing;
    bool copied = false;
    Run(group, [&](Transport& t) { return FromFirst(t, size_t{200} << 10, &copied); });
    EXPECT_EQ(copied, world > 2) << world << " ranks";
  }
}

TEST_F(ForSeveralTest, AGroupOfTheRanksSharesTheBoard) {
  Group group(5);
  group.options.shared_memory_bytes = Channel::kMinRing;
  std::barrier everybody(5);
  bool copied = false;
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    const auto part = comm.Split(comm.rank() % 2, comm.rank(), "halves");
    ASSERT_TRUE(part.ok()) << part.status();
    bool mine = false;
    ASSERT_TRUE(RunOn(**part, [&](Transport& t) { return FromFirst(t, 100'000, &mine); }).ok());
    if (comm.rank() == 0) copied = mine;
    ASSERT_TRUE(comm.Barrier("end").ok());
  });
  EXPECT_TRUE(copied) << "ranks 0, 2 and 4";
}

// Every rank has messages for all others, some of them larger than a board; over every mixture of
// memory and TCP.
TEST_F(ForSeveralTest, AllMessagesArriveFromEveryRankOverAllWires) {
  constexpr size_t kLengths[] = {3 << 20, 0, 40, 1024, 100'000, 1023, (1 << 20) + 7, 512 << 10};
  for (const testing::Wires wires : testing::kAllWires) {
    SCOPED_TRACE(testing::NameOf(wires));
    Group group(4, wires);
    Run(group, [&](Transport& transport) -> absl::Status {
      std::vector<std::vector<std::byte>> sent, got;
      Receipts receipts(&transport.workspace());
      for (const size_t length : kLengths) {
        sent.push_back(Bytes(length, static_cast<unsigned>(transport.rank())));
        for (const int from : All(transport)) {
          if (from != transport.rank())
            receipts.push_back(transport.PostReceive(from, got.emplace_back(length)));
        }
        transport.PostSendToEach(All(transport), sent.back());
      }
      for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport.Wait(receipt));
      size_t at = 0;
      for (const size_t length : kLengths) {
        for (const int from : All(transport)) {
          if (from == transport.rank()) continue;
          EXPECT_EQ(got[at++], Bytes(length, static_cast<unsigned>(from))) << length << " bytes";
        }
      }
      return transport.Finish();
    });
  }
}

// Rank 3 takes nothing before rank 1 has everything.
TEST_F(ForSeveralTest, AMessageThatOneRankDoesNotTakeReachesTheOthers) {
  constexpr size_t kMessages = 12;
  Group group(4);
  Run(group, [&](Transport& transport) -> absl::Status {
    const auto bytes = Bytes(size_t{256} << 10, 9);
    if (transport.rank() == 0) {
      for (size_t i = 0; i < kMessages; ++i) transport.PostSendToEach(All(transport), bytes);
      return transport.Finish();
    }
    std::byte word{1};
    if (transport.rank() == 3)
      RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(1, std::span(&word, 1))));
    for (size_t i = 0; i < kMessages; ++i) {
      std::vector<std::byte> got(bytes.size());
      RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(0, got)));
      EXPECT_EQ(got, bytes);
    }
    if (transport.rank() == 1) transport.PostSend(3, std::span(&word, 1));
    return transport.Finish();
  });
}

// Of rank `from`, the step-th.
std::vector<std::byte> MessageOf(int from, int step, unsigned seed) {
  std::mt19937 random(seed + static_cast<unsigned>(1000 * step + from));
  return Bytes(1 + random() % 100'000, random());
}

// Some megabytes from every rank. Rank 3 asks for each message when the others are so many steps
// further that all between them is more than a board.
TEST_F(ForSeveralTest, MessagesGoAroundTheBoardManyTimesWhileOneReaderIsBehind) {
  constexpr int kSteps = 150, kBehind = 28;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Group group(4);
  Run(group, [&](Transport& transport) -> absl::Status {
    const int behind = transport.rank() == 3 ? kBehind : 0;
    std::vector<std::vector<std::byte>> sent;
    for (int step = 0; step < kSteps + behind; ++step) {
      if (step < kSteps) {
        sent.push_back(MessageOf(transport.rank(), step, seed));
        transport.PostSendToEach(All(transport), sent.back());
      }
      if (step < behind) continue;
      for (const int from : All(transport)) {
        if (from == transport.rank()) continue;
        const std::vector<std::byte> expected = MessageOf(from, step - behind, seed);
        std::vector<std::byte> got(expected.size());
        RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(from, got)));
        EXPECT_EQ(got, expected) << "step " << step << " of rank " << from;
      }
    }
    return transport.Finish();
  });
}

// Files that this process has mapped and that still have a name.
size_t CountNamed() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    const bool ours = line.find(std::string("/dev/shm/") + kNamePrefix) != std::string::npos;
    count += ours && line.find("(deleted)") == std::string::npos ? 1 : 0;
  }
  return count;
}

TEST_F(ForSeveralTest, ABoardLosesItsNameWhenAllRanksHaveMappedIt) {
  Group group(3);
  group.options.operation_timeout = testing::kImpatience;
  std::barrier everybody(3);
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    const auto deadline = std::chrono::steady_clock::now() + testing::kPatience;
    float named = 1;
    while (named > 0 && std::chrono::steady_clock::now() < deadline) {
      named = static_cast<float>(CountNamed());
      ASSERT_TRUE(
          comm.Allreduce(Reduction::kMax, std::span(&named, 1), std::span(&named, 1), "x").ok());
    }
    EXPECT_EQ(named, 0);
  });
}

}  // namespace
}  // namespace ringmaster::collectives::shm

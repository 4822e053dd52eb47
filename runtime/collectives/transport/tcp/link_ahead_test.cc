// What a link reads before it is asked for: what is heard of it at once, and what is received of it
// later.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <poll.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "runtime/collectives/transport/tcp/link.h"

namespace ringmaster::collectives::tcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Ear final : public FrameHandler {
 public:
  absl::Status OnControl(int, const FrameHeader& header, const std::string& text) override {
    heard_.push_back(text);
    return header.type == FrameType::kAbort ? absl::AbortedError(text) : absl::OkStatus();
  }
  absl::Status OnData(int, const FrameHeader&, std::optional<size_t>) override {
    return absl::OkStatus();
  }
  const std::vector<std::string>& heard() const { return heard_; }

 private:
  std::vector<std::string> heard_;
};

std::vector<std::byte> Numbers(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// A link that has read the header of a message which nobody has asked for, and its peer's end of
// the connection.
class LinkAheadTest : public ::testing::Test {
 protected:
  LinkAheadTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    link_.Attach(UniqueFd(fds[0]), now_);
    link_.UseTcp();
    peer_ = UniqueFd(fds[1]);
    SendData(first_);
    EXPECT_TRUE(link_.Read(now_).ok());
    EXPECT_TRUE(link_.held_back());
  }

  void Send(std::span<const std::byte> bytes) {
    EXPECT_EQ(send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void SendData(const std::vector<std::byte>& message) {
    Send(EncodeFrameHeader({.type = FrameType::kData, .length = message.size()}));
    Send(message);
  }
  void SendControl(FrameType type, const std::string& text) {
    Send(EncodeFrameHeader({.type = type, .length = text.size()}));
    Send(std::as_bytes(std::span(text)));
  }
  absl::Status ReadAhead() { return link_.ReadAhead(now_); }

  void ExpectReceived(const std::vector<std::byte>& message) {
    std::vector<std::byte> into(message.size());
    const uint64_t number = link_.PostReceive(Arrival(std::span(into)));
    EXPECT_TRUE(link_.unblocked());
    EXPECT_TRUE(link_.Read(now_).ok());
    EXPECT_EQ(link_.completed_receives(), number);
    EXPECT_EQ(into, message);
  }

  const std::vector<std::byte> first_ = Numbers(1000);
  const SteadyTime now_{};
  Ear handler_;
  Link link_{1, &handler_};
  UniqueFd peer_;
};

TEST_F(LinkAheadTest, HearsAnAbortBehindDataThatNobodyAskedFor) {
  SendControl(FrameType::kAlive, "early");
  SendData(Numbers(5000));
  SendControl(FrameType::kAbort, "drain");
  EXPECT_EQ(ReadAhead().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(handler_.heard(), ElementsAre("drain"));
}

TEST_F(LinkAheadTest, HearsAnAbortThatComesInPieces) {
  const std::string text = "drain";
  const FrameHeaderBytes header =
      EncodeFrameHeader({.type = FrameType::kAbort, .length = text.size()});
  Send(std::span(header).first(7));
  ASSERT_TRUE(ReadAhead().ok());
  Send(std::span(header).subspan(7));
  Send(std::as_bytes(std::span(text)).first(2));
  ASSERT_TRUE(ReadAhead().ok());
  EXPECT_THAT(handler_.heard(), IsEmpty());
  Send(std::as_bytes(std::span(text)).subspan(2));
  EXPECT_EQ(ReadAhead().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(handler_.heard(), ElementsAre("drain"));
}

TEST_F(LinkAheadTest, WhatWasReadAheadIsReceivedInItsTurnWhereverReadingStopped) {
  const std::vector<std::byte> second = Numbers(300);
  const std::string alive = "alive";
  const FrameHeaderBytes header =
      EncodeFrameHeader({.type = FrameType::kData, .length = second.size()});
  ASSERT_TRUE(ReadAhead().ok());
  SendControl(FrameType::kAlive, alive);
  Send(std::span(header).first(11));
  ASSERT_TRUE(ReadAhead().ok());
  EXPECT_THAT(handler_.heard(), IsEmpty());
  ExpectReceived(first_);
  EXPECT_THAT(handler_.heard(), ElementsAre(alive));
  Send(std::span(header).subspan(11));
  Send(std::span(second).first(100));
  ASSERT_TRUE(link_.Read(now_).ok());
  ASSERT_TRUE(link_.held_back());
  ASSERT_TRUE(ReadAhead().ok());
  Send(std::span(second).subspan(100));
  ExpectReceived(second);
}

TEST_F(LinkAheadTest, ASecondTimeItReadsOnBehindWhatIsLeftOfTheFirst) {
  SendData(Numbers(200));
  SendData(Numbers(400));
  ASSERT_TRUE(ReadAhead().ok());
  ExpectReceived(first_);
  ASSERT_TRUE(link_.held_back());
  SendData(Numbers(600));
  ASSERT_TRUE(ReadAhead().ok());
  for (const size_t count : {200, 400, 600}) ExpectReceived(Numbers(count));
  SendData(Numbers(50));
  ASSERT_TRUE(link_.Read(now_).ok());
  ExpectReceived(Numbers(50));
  EXPECT_FALSE(link_.unblocked());
}

TEST_F(LinkAheadTest, WhatWasReadAheadIsCombined) {
  std::vector<float> theirs(1000);
  std::iota(theirs.begin(), theirs.end(), 1.0f);
  const auto bytes = std::as_bytes(std::span(theirs));
  SendData({bytes.begin(), bytes.end()});
  ASSERT_TRUE(ReadAhead().ok());
  ExpectReceived(first_);
  std::vector<float> mine(1000, 0.5f);
  link_.PostReceive(Combining{.combiner = {Reduction::kSum, ElementType::kF32},
                              .mine = std::as_bytes(std::span(mine)),
                              .into = std::as_writable_bytes(std::span(mine))});
  ASSERT_TRUE(link_.Read(now_).ok());
  EXPECT_EQ(link_.completed_receives(), 2u);
  EXPECT_EQ(mine.front(), 1.5f);
  EXPECT_EQ(mine.back(), 1000.5f);
}

TEST_F(LinkAheadTest, AGoodbyeBehindDataIsNoLossAndIsHeardInItsTurn) {
  SendControl(FrameType::kGoodbye, "");
  peer_.Reset();
  ASSERT_TRUE(ReadAhead().ok());
  ASSERT_TRUE(ReadAhead().ok());
  EXPECT_FALSE(link_.left());
  EXPECT_EQ(link_.interest(/*reads_ahead=*/true), 0) << "it would spin";
  ExpectReceived(first_);
  EXPECT_TRUE(link_.left());
  EXPECT_FALSE(link_.unblocked());
}

TEST_F(LinkAheadTest, AnEndWithoutAGoodbyeIsALoss) {
  SendData(Numbers(10));
  peer_.Reset();
  const absl::Status status = ReadAhead();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost the connection"));
}

TEST_F(LinkAheadTest, NoFrameAtAllIsNoticedAhead) {
  Send(std::array<std::byte, kFrameHeaderBytes>{});
  EXPECT_EQ(ReadAhead().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LinkAheadTest, ReadsNoFurtherThanItsBoundUntilThePeerHasEnded) {
  const std::vector<std::byte> message = Numbers(10'000);
  const FrameHeaderBytes header =
      EncodeFrameHeader({.type = FrameType::kData, .length = message.size()});
  std::vector<std::byte> frame(header.begin(), header.end());
  frame.insert(frame.end(), message.begin(), message.end());
  std::vector<std::byte> unsent;
  size_t messages = 0;
  while (true) {
    if (unsent.empty()) {
      unsent = frame;
      ++messages;
    }
    const ssize_t sent = send(peer_.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      unsent.erase(unsent.begin(), unsent.begin() + sent);
    } else if (link_.may_read_ahead()) {
      ASSERT_TRUE(ReadAhead().ok());
    } else {
      break;
    }
  }
  EXPECT_GE(messages * frame.size() + unsent.size(), Link::kMostAheadBytes);
  EXPECT_LT(messages * frame.size(), 2 * Link::kMostAheadBytes);
  pollfd ended{link_.fd(), link_.interest(/*reads_ahead=*/true), 0};
  EXPECT_EQ(poll(&ended, 1, 0), 0) << "data is no news";
  ASSERT_TRUE(ReadAhead().ok()) << "reads nothing";
  peer_.Reset();
  EXPECT_EQ(poll(&ended, 1, 0), 1);
  EXPECT_EQ(ReadAhead().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LinkAheadTest, OneLookReadsNoMoreThanAGulpWhateverHasCome) {
  const std::vector<std::byte> message = Numbers(Link::kMostAheadBytes);
  Send(EncodeFrameHeader({.type = FrameType::kData, .length = message.size()}));
  uint64_t sent = 0;
  const auto fill = [&] {
    while (sent < message.size()) {
      const auto left = std::span(message).subspan(sent);
      const ssize_t bytes = send(peer_.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (bytes <= 0) break;
      sent += static_cast<uint64_t>(bytes);
    }
  };
  const int much = 4 * Link::kAheadGulpBytes;
  ASSERT_EQ(setsockopt(peer_.get(), SOL_SOCKET, SO_SNDBUF, &much, sizeof(much)), 0);
  fill();
  ASSERT_GT(sent, Link::kAheadGulpBytes * 3 / 2) << "no more than a gulp has come";
  const uint64_t before = link_.bytes_moved();
  ASSERT_TRUE(ReadAhead().ok());
  EXPECT_GE(link_.bytes_moved() - before, Link::kAheadGulpBytes);
  EXPECT_LT(link_.bytes_moved() - before, Link::kAheadGulpBytes * 3 / 2);
  EXPECT_EQ(link_.interest(/*reads_ahead=*/true), POLLIN) << "there is more";
  while (link_.may_read_ahead()) {
    fill();
    ASSERT_TRUE(ReadAhead().ok());
  }
}

TEST_F(LinkAheadTest, OnlyWhoReadsAheadIsToldOfData) {
  EXPECT_EQ(link_.interest(/*reads_ahead=*/false), POLLRDHUP);
  EXPECT_EQ(link_.interest(/*reads_ahead=*/true), POLLIN);
}

// What is beyond the bound fits into the socket, and is more than one step of reading.
TEST_F(LinkAheadTest, HearsAnAbortBehindMoreThanItsBoundWhenThePeerWritesNothingMore) {
  const std::vector<std::byte> message = Numbers(Link::kMostAheadBytes + 100'000);
  Send(EncodeFrameHeader({.type = FrameType::kData, .length = message.size()}));
  for (std::span<const std::byte> left = message; !left.empty();) {
    const ssize_t sent = send(peer_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) left = left.subspan(static_cast<size_t>(sent));
    ASSERT_TRUE(ReadAhead().ok());
  }
  while (link_.may_read_ahead()) ASSERT_TRUE(ReadAhead().ok());
  SendControl(FrameType::kAbort, "drain");
  ASSERT_TRUE(ReadAhead().ok());
  EXPECT_THAT(handler_.heard(), IsEmpty());
  shutdown(peer_.get(), SHUT_WR);
  EXPECT_EQ(ReadAhead().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(handler_.heard(), ElementsAre("drain"));
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

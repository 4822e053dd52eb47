#include "runtime/collectives/transport/tcp/link.h"

#include <array>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace ringmaster::collectives::tcp {
namespace {

class Indifferent final : public FrameHandler {
 public:
  absl::Status OnControl(int, const FrameHeader&, const std::string&) override {
    return absl::OkStatus();
  }
  absl::Status OnData(int, const FrameHeader&, std::optional<size_t>) override {
    return absl::OkStatus();
  }
};

// A link that awaits one empty message, and its peer's end of the connection.
class LinkTest : public ::testing::Test {
 protected:
  LinkTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    link_.Attach(UniqueFd(fds[0]), now_);
    link_.UseTcp();
    peer_ = UniqueFd(fds[1]);
    link_.PostReceive(Arrival(std::span<std::byte>()));
  }

  // The peer's last message, and its goodbye.
  void SendTheLast() {
    for (const FrameType type : {FrameType::kData, FrameType::kGoodbye}) {
      const FrameHeaderBytes header = EncodeFrameHeader({.type = type});
      EXPECT_EQ(write(peer_.get(), header.data(), header.size()),
                static_cast<ssize_t>(header.size()));
    }
  }

  const SteadyTime now_{};
  Indifferent handler_;
  Link link_{1, &handler_};
  UniqueFd peer_;
};

// Otherwise a rank that says that it waits just when the last message comes would lose the round.
TEST_F(LinkTest, OwesAPeerThatHasLeftNoSignOfLife) {
  link_.QueueControl({.type = FrameType::kAlive}, "");
  SendTheLast();
  ASSERT_TRUE(link_.Read(now_).ok());
  EXPECT_EQ(link_.completed_receives(), 1u);
  EXPECT_TRUE(link_.left());
  EXPECT_FALSE(link_.has_work());
}

TEST_F(LinkTest, ASignOfLifeThatNobodyHearsIsNoLoss) {
  link_.QueueControl({.type = FrameType::kAlive}, "");
  SendTheLast();
  peer_.Reset();
  EXPECT_TRUE(link_.Write(now_).ok());
  EXPECT_EQ(link_.completed_receives(), 1u);
  EXPECT_FALSE(link_.has_work());
}

TEST_F(LinkTest, DataForAPeerThatHasLeftIsLost) {
  const std::array<std::byte, 4> data{};
  link_.QueueData({.type = FrameType::kData, .length = data.size()}, data);
  SendTheLast();
  ASSERT_TRUE(link_.Read(now_).ok());
  EXPECT_TRUE(link_.has_work());
  peer_.Reset();
  EXPECT_EQ(link_.Write(now_).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

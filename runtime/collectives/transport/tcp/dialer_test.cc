// The dialer against an acceptor made by hand, under a clock made by hand.
#include "runtime/collectives/transport/tcp/dialer.h"

#include <chrono>
#include <future>
#include <poll.h>
#include <span>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/frame.h"
#include "runtime/collectives/transport/handshake.h"
#include "runtime/collectives/transport/tcp/listener.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// How often, and how long each time, a test looks for what must come.
constexpr int kTries = 6000;
constexpr int kTryMs = 10;

class DialerTest : public ::testing::Test {
 protected:
  DialerTest() {
    const auto wanted = ParseAddress(collectives::testing::LoopbackAddress(1));
    listening_ = *ListenAt(*wanted);
    membership_.job = "test/dialer";
    membership_.round = 3;
    membership_.key = "a key that only the members know";
    membership_.members = {{"127.0.0.1:1", "uid-0"},
                           {FormatAddress(*LocalAddress(listening_.get())), "uid-1"}};
    source_ = *ParseAddress(collectives::testing::LoopbackAddress(0));
  }

  static bool Ready(int fd, short events, int patience_ms) {
    pollfd entry{fd, events, 0};
    return poll(&entry, 1, patience_ms) == 1;
  }
  bool DialledAgain() const { return Ready(listening_.get(), POLLIN, 0); }

  // Steps the dialer until something has come for `peer`.
  static void StepUntilHeard(Dialer& dialer, SteadyTime now, const UniqueFd& peer) {
    for (int i = 0; i < kTries && !Ready(peer.get(), POLLIN, kTryMs); ++i) {
      EXPECT_TRUE(dialer.Step(now).ok());
    }
  }
  static void AwaitHeard(int fd) { EXPECT_TRUE(Ready(fd, POLLIN, kTries * kTryMs)); }

  // From `now` on, each time `late` after it asked to be stepped. When, and what it said.
  std::pair<SteadyTime, std::string> StepUntilItGivesUp(Dialer& dialer, SteadyTime now,
                                                        milliseconds late = milliseconds(0)) const {
    auto step = dialer.Step(now);
    while (step.ok() && now < start_ + seconds(100)) {
      now = dialer.wake_at() + late;
      step = dialer.Step(now);
    }
    EXPECT_EQ(step.status().code(), absl::StatusCode::kDeadlineExceeded) << step.status();
    return {now, Message(step.status())};
  }

  static void Read(const UniqueFd& fd, std::span<std::byte> into) {
    EXPECT_EQ(recv(fd.get(), into.data(), into.size(), MSG_WAITALL),
              static_cast<ssize_t>(into.size()));
  }

  UniqueFd TakeProof(Dialer& dialer, SteadyTime now) {
    return TakeProof([&](const UniqueFd& peer) { StepUntilHeard(dialer, now, peer); });
  }

  // The acceptor's side up to the dialer's proof; `hear` returns when something has come.
  template <typename Hear>
  UniqueFd TakeProof(const Hear& hear) {
    hear(listening_);
    UniqueFd peer(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    hear(peer);
    HelloBytes hello;
    Read(peer, hello);
    Answer answer;
    answer.challenge = NewChallenge();
    answer.proof = AcceptorProof(membership_, 1, hello, answer.challenge);
    EXPECT_TRUE(SendRecord(peer.get(), EncodeAnswer(answer)));
    hear(peer);
    Sha256Digest proof;
    Read(peer, std::as_writable_bytes(std::span(proof)));
    EXPECT_EQ(proof, DialerProof(membership_, 1, hello, answer.challenge));
    return peer;
  }

  UniqueFd listening_;
  Membership membership_;
  SocketAddress source_;
  const SteadyTime start_ = std::chrono::steady_clock::now();
};

TEST_F(DialerTest, TriesAgainWhenNobodyAnswers) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(60));
  StepUntilHeard(dialer, start_, listening_);
  const UniqueFd silent(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (int second = 1; second < 10 && !DialledAgain(); ++second) {
    ASSERT_TRUE(dialer.Step(start_ + seconds(second)).ok());
  }
  EXPECT_TRUE(DialledAgain());
}

// A machine that stalls for longer than an attempt may take: the peer has taken the connection.
TEST_F(DialerTest, StaysWithTheConnectionOnceItHasProvedItself) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(60));
  const UniqueFd peer = TakeProof(dialer, start_);
  const SteadyTime late = start_ + seconds(50);
  auto step = dialer.Step(late);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_FALSE(step->has_value());
  EXPECT_GT(dialer.wake_at(), late) << "it would spin";
  const uint32_t accepted = 0;
  EXPECT_TRUE(SendRecord(peer.get(), std::as_bytes(std::span(&accepted, 1))));
  for (int i = 0; i < kTries && step.ok() && !step->has_value(); ++i) {
    Ready(dialer.Interest().fd, POLLIN, kTryMs);
    step = dialer.Step(late);
  }
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(step->has_value());
  EXPECT_FALSE(DialledAgain());
}

TEST_F(DialerTest, GivesUpAtTheDeadlineSayingWhatTheTroubleWas) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(60));
  listening_.Reset();
  ASSERT_TRUE(dialer.Step(start_).ok());
  for (int i = 0; i < kTries && dialer.Interest().fd >= 0; ++i) {
    Ready(dialer.Interest().fd, POLLOUT, kTryMs);
    ASSERT_TRUE(dialer.Step(start_).ok());
  }
  const auto [now, why] = StepUntilItGivesUp(dialer, start_);
  EXPECT_EQ(now, start_ + seconds(60));
  EXPECT_THAT(why, HasSubstr("Connection refused"));
}

TEST_F(DialerTest, ReadsWhatHasComeBeforeItGivesUp) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(5));
  const UniqueFd peer = TakeProof(dialer, start_);
  SteadyTime now = start_;
  auto step = dialer.Step(now);
  while (dialer.wake_at() < start_ + seconds(5)) {
    now = dialer.wake_at();
    step = dialer.Step(now);
    ASSERT_TRUE(step.ok()) << step.status();
  }
  const uint32_t accepted = 0;
  ASSERT_TRUE(SendRecord(peer.get(), std::as_bytes(std::span(&accepted, 1))));
  AwaitHeard(dialer.Interest().fd);
  step = dialer.Step(now + milliseconds(150));
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(step->has_value());
}

// Its rank was held up for longer than the peer had time to answer.
TEST_F(DialerTest, CountsNoTimeInWhichNobodyLooked) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(5));
  const UniqueFd peer = TakeProof(dialer, start_ + seconds(20));
  const uint32_t accepted = 0;
  ASSERT_TRUE(SendRecord(peer.get(), std::as_bytes(std::span(&accepted, 1))));
  AwaitHeard(dialer.Interest().fd);
  const auto step = dialer.Step(start_ + seconds(40));
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(step->has_value());
}

TEST_F(DialerTest, HasTheRestOfItsTimeWhenItIsSteppedAgainAfterAnAbsence) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(5));
  const UniqueFd peer = TakeProof(dialer, start_);
  const auto [now, why] = StepUntilItGivesUp(dialer, start_ + seconds(60));
  EXPECT_EQ(now, start_ + seconds(65) - milliseconds(100));
  EXPECT_THAT(why, HasSubstr("could not be reached for "));
}

TEST_F(DialerTest, GivesUpThoughEachOfItsStepsIsLate) {
  Dialer dialer(membership_, 1, source_, start_ + seconds(5));
  const UniqueFd peer = TakeProof(dialer, start_);
  const SteadyTime gave_up = StepUntilItGivesUp(dialer, start_, /*late=*/milliseconds(150)).first;
  EXPECT_LT(gave_up, start_ + seconds(13));
}

// The peer may have taken the connection, and would see nothing but its end.
TEST_F(DialerTest, WhoGivesUpTellsAPeerThatMayHaveTakenTheConnectionWhy) {
  const auto listener = Listener::Open(FormatAddress(source_));
  ASSERT_TRUE(listener.ok()) << listener.status();
  CommunicatorOptions options;
  static_cast<Membership&>(options) = membership_;
  options.members[0].address = (*listener)->address();
  options.transport = TransportChoice::kTcp;
  options.connect_timeout = std::chrono::seconds(1);
  const auto comm = Communicator::Create(options, **listener);
  ASSERT_TRUE(comm.ok()) << comm.status();
  auto barrier = std::async(std::launch::async, [&] { return (*comm)->Barrier("b"); });
  const UniqueFd peer = TakeProof([](const UniqueFd& from) { AwaitHeard(from.get()); });
  const absl::Status status = barrier.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  AwaitHeard(peer.get());
  FrameHeaderBytes bytes;
  Read(peer, bytes);
  const auto header = DecodeFrameHeader(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->type, FrameType::kAbort);
  std::string why(header->length, '?');
  Read(peer, std::as_writable_bytes(std::span(why)));
  EXPECT_EQ(why, Message(status));
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

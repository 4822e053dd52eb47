#include "runtime/collectives/transport/tcp/link.h"

#include <algorithm>
#include <array>
#include <memory>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "runtime/collectives/transport/tcp/socket.h"

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

constexpr int kDeadlineMs = 10'000;

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
    Send(FrameType::kData);
    Send(FrameType::kGoodbye);
  }
  void Send(FrameType type) {
    const FrameHeaderBytes header = EncodeFrameHeader({.type = type});
    EXPECT_EQ(write(peer_.get(), header.data(), header.size()),
              static_cast<ssize_t>(header.size()));
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

// Who waits for several peers may ask for what one of them has left in shared memory long ago.
TEST_F(LinkTest, TellsAPeerThatHasLeftNothing) {
  SendTheLast();
  ASSERT_TRUE(link_.Read(now_).ok());
  peer_.Reset();
  link_.QueueControl({.type = FrameType::kOperation}, "what it is waited for");
  EXPECT_FALSE(link_.has_queued());
  EXPECT_TRUE(link_.Write(now_).ok());
}

TEST_F(LinkTest, ASignOfLifeThatNobodyHearsIsNoLoss) {
  link_.QueueControl({.type = FrameType::kAlive}, "");
  SendTheLast();
  peer_.Reset();
  EXPECT_TRUE(link_.Write(now_).ok());
  EXPECT_EQ(link_.completed_receives(), 1u);
  EXPECT_FALSE(link_.has_work());
}

// Who only sends is done before others have asked for what it sent.
TEST_F(LinkTest, WhatAPeerThatHasLeftSentIsReadWhenItIsAskedForWhateverItWasTold) {
  Send(FrameType::kData);
  SendTheLast();
  peer_.Reset();
  link_.QueueControl({.type = FrameType::kAlive}, "");
  EXPECT_TRUE(link_.Write(now_).ok());
  EXPECT_EQ(link_.completed_receives(), 1u);
  EXPECT_FALSE(link_.left());
  EXPECT_FALSE(link_.has_work());
  link_.PostReceive(Arrival(std::span<std::byte>()));
  ASSERT_TRUE(link_.Read(now_).ok());
  EXPECT_EQ(link_.completed_receives(), 2u);
  EXPECT_TRUE(link_.left());
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

// Looks at a peer's end of a connection when the peer's own data begins to be read.
class LooksAtThePeer final : public FrameHandler {
 public:
  absl::Status OnControl(int, const FrameHeader&, const std::string&) override {
    ++words;
    return absl::OkStatus();
  }
  absl::Status OnData(int, const FrameHeader&, std::optional<size_t>) override {
    words_before_data = words;
    EXPECT_EQ(ioctl(peer, FIONREAD, &readable), 0);
    return absl::OkStatus();
  }

  int peer = -1;
  int words = 0;
  int words_before_data = 0;
  int readable = 0;
};

// Two ranks would take turns otherwise: the one that is late reads all that the other has sent,
// sends only then, and so the other is late.
TEST(TcpLinkTest, SendsAfterThePeersWordsAndBeforeItReadsThePeersData) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd peer(fds[1]);
  const SteadyTime now{};
  LooksAtThePeer handler;
  handler.peer = peer.get();
  Link link(1, &handler);
  link.Attach(UniqueFd(fds[0]), now);
  link.UseTcp();
  std::array<std::byte, 100> into{};
  link.PostReceive(Arrival(std::span<std::byte>(into)));
  std::vector<std::byte> arriving;
  for (const FrameHeader& header : {FrameHeader{.type = FrameType::kAlive},
                                    FrameHeader{.type = FrameType::kData, .length = into.size()}}) {
    const FrameHeaderBytes bytes = EncodeFrameHeader(header);
    arriving.insert(arriving.end(), bytes.begin(), bytes.end());
  }
  arriving.insert(arriving.end(), into.size(), std::byte{7});
  ASSERT_EQ(write(peer.get(), arriving.data(), arriving.size()),
            static_cast<ssize_t>(arriving.size()));
  const std::array<std::byte, 10> out{};
  link.QueueData({.type = FrameType::kData, .length = out.size()}, out);

  ASSERT_TRUE(link.Move(now).ok());
  EXPECT_EQ(handler.words_before_data, 1);
  EXPECT_EQ(handler.readable, static_cast<int>(sizeof(FrameHeaderBytes) + out.size()));
  EXPECT_EQ(link.completed_receives(), 1u);
  EXPECT_EQ(into.back(), std::byte{7});
}

// Else whoever receives a long stream would see neither an abort nor other peers before its end,
// and pass on nothing of it.
TEST(TcpLinkTest, ReadsALongStreamInGulps) {
  constexpr size_t kMessage = 32 * 1024;
  auto address = ParseAddress("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  auto listening = ListenAt(*address);
  ASSERT_TRUE(listening.ok()) << listening.status();
  auto target = LocalAddress(listening->get());
  ASSERT_TRUE(target.ok()) << target.status();
  auto sender = StartConnecting(*target, *address);
  ASSERT_TRUE(sender.ok()) << sender.status();
  pollfd arrived{listening->get(), POLLIN, 0};
  ASSERT_EQ(poll(&arrived, 1, kDeadlineMs), 1);
  const int receiver = accept4(listening->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  ASSERT_GE(receiver, 0);
  const SteadyTime now{};
  Indifferent handler;
  Link link(1, &handler);
  link.Attach(UniqueFd(receiver), now);
  link.UseTcp();
  std::vector<std::byte> frame(kFrameHeaderBytes + kMessage);
  const FrameHeaderBytes header = EncodeFrameHeader({.type = FrameType::kData, .length = kMessage});
  std::copy(header.begin(), header.end(), frame.begin());
  std::vector<std::byte> into(kMessage);
  size_t sent = 0;  // as much as the two buffers hold
  for (ssize_t more = 1; more > 0;) {
    more = send(sender->get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (more > 0) sent += static_cast<size_t>(more);
    link.PostReceive(Arrival(std::span(into)));
    if (more < static_cast<ssize_t>(frame.size())) break;
  }
  ASSERT_GT(sent, 3 * Link::kGulpBytes);
  ASSERT_TRUE(link.Read(now).ok());
  EXPECT_GT(link.bytes_moved(), 0u);
  EXPECT_LE(link.bytes_moved(), Link::kGulpBytes + frame.size());
  while (link.bytes_moved() < sent) {
    pollfd readable{link.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, kDeadlineMs), 1);
    ASSERT_TRUE(link.Read(now).ok());
  }
  EXPECT_EQ(link.completed_receives(), sent / frame.size());
}

// A link over shared memory and its peer's side of it.
class SharedLinkTest : public ::testing::Test {
 protected:
  static constexpr size_t kRing = 512 * 1024;
  static constexpr size_t kMessage = 32 * 1024;
  static constexpr size_t kInRing = kRing / kMessage;

  SharedLinkTest() {
    auto segment = shm::Segment::Make(shm::Channel::SegmentBytes(kRing));
    EXPECT_TRUE(segment.ok()) << segment.status();
    auto other = shm::Segment::Open((*segment)->name(), shm::Channel::SegmentBytes(kRing));
    EXPECT_TRUE(other.ok()) << other.status();
    peer_ = std::make_unique<shm::Channel>(*std::move(segment), kRing, 0, shm::Processors{});
    link_.UseSharedMemory(
        std::make_unique<shm::Channel>(*std::move(other), kRing, 1, shm::Processors{}),
        /*round=*/1);
  }

  Indifferent handler_;
  Link link_{1, &handler_};
  std::unique_ptr<shm::Channel> peer_;
  std::vector<std::byte> message_ = std::vector<std::byte>(kMessage);
};

// Else whoever receives a long stream would see neither an abort nor other peers before its end.
TEST_F(SharedLinkTest, TakesALongStreamInGulps) {
  for (size_t i = 0; i < kInRing; ++i) {
    link_.PostReceive(Arrival(std::span(message_)));
    size_t sent = 0;
    EXPECT_TRUE(peer_->Send(1, 1, message_, &sent));
  }
  ASSERT_TRUE(link_.MoveShared().ok());
  EXPECT_LE(link_.completed_receives() * kMessage, Link::kSharedGulpBytes);
  EXPECT_GT(link_.completed_receives(), 0u);
  for (size_t i = 0; i < kInRing; ++i) ASSERT_TRUE(link_.MoveShared().ok());
  EXPECT_EQ(link_.completed_receives(), kInRing);
}

TEST_F(SharedLinkTest, SendsNoLongStreamBeforeAnybodyLooksUp) {
  constexpr size_t kMessages = 1000;
  for (size_t i = 0; i < kMessages; ++i) {
    link_.QueueShared(message_);
    for (shm::Channel::Piece piece; peer_->Peek(&piece);) peer_->Take();
  }
  EXPECT_TRUE(link_.has_held());
  size_t looks = 0;
  while (link_.has_held()) {
    ASSERT_TRUE(link_.MoveShared().ok());
    for (shm::Channel::Piece piece; peer_->Peek(&piece);) peer_->Take();
    ++looks;
  }
  EXPECT_GT(looks, kMessages * kMessage / Link::kSharedGulpBytes / 2);
  EXPECT_EQ(link_.bytes_sent(), kMessages * kMessage);
}

// Both ends of a connection with TLS.
struct EncryptedPair {
  EncryptedPair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    dialer.fd = UniqueFd(fds[0]);
    acceptor.fd = UniqueFd(fds[1]);
    const Sha256Digest key = Sha256Of("key");
    dialer.tls = std::make_unique<TlsStream>(TlsStream::Side::kDialer, fds[0], key);
    acceptor.tls = std::make_unique<TlsStream>(TlsStream::Side::kAcceptor, fds[1], key);
    EXPECT_EQ(dialer.tls->Handshake(), IoState::kWouldBlock);
    EXPECT_EQ(acceptor.tls->Handshake(), IoState::kWouldBlock);
    EXPECT_EQ(dialer.tls->Handshake(), IoState::kComplete);  // for the acceptor one message is left
  }

  Connection dialer;
  Connection acceptor;
};

// No poll would ever tell of it.
TEST(EncryptedLinkTest, ReadsWhatCameTogetherWithTheEndOfTheHandshake) {
  EncryptedPair pair;
  FrameHeaderBytes header = EncodeFrameHeader({.type = FrameType::kData});
  const iovec part{header.data(), header.size()};
  ASSERT_EQ(pair.dialer.tls->Write(std::span(&part, 1)), static_cast<ssize_t>(header.size()));
  ASSERT_EQ(pair.acceptor.tls->Handshake(), IoState::kComplete);
  pollfd readable{pair.acceptor.fd.get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 0), 0) << "the kernel still has it";
  const SteadyTime now{};
  Indifferent handler;
  Link link(0, &handler);
  link.Attach(std::move(pair.acceptor.fd), now, std::move(pair.acceptor.tls));
  link.UseTcp();
  link.PostReceive(Arrival(std::span<std::byte>()));
  EXPECT_TRUE(link.unblocked());
  ASSERT_TRUE(link.Read(now).ok());
  EXPECT_EQ(link.completed_receives(), 1u);
  EXPECT_FALSE(link.unblocked()) << "it would spin";
}

class Ear final : public FrameHandler {
 public:
  absl::Status OnControl(int, const FrameHeader&, const std::string& text) override {
    return absl::AbortedError(text);
  }
  absl::Status OnData(int, const FrameHeader&, std::optional<size_t>) override {
    return absl::OkStatus();
  }
};

// No poll would tell of it either.
TEST(EncryptedLinkTest, ReadsOnAheadWhatTlsHasTakenBeyondAGulp) {
  for (const bool aborts : {true, false}) {
    EncryptedPair pair;
    ASSERT_EQ(pair.acceptor.tls->Handshake(), IoState::kComplete);
    const int much = 4 * Link::kAheadGulpBytes;
    setsockopt(pair.dialer.fd.get(), SOL_SOCKET, SO_SNDBUF, &much, sizeof(much));
    std::vector<std::byte> data(Link::kAheadGulpBytes + 30'000);
    FrameHeaderBytes header = EncodeFrameHeader({.type = FrameType::kData, .length = data.size()});
    FrameHeaderBytes abort = EncodeFrameHeader({.type = FrameType::kAbort});
    std::vector<std::byte> sent(header.begin(), header.end());
    sent.insert(sent.end(), data.begin(), data.end());
    if (aborts) sent.insert(sent.end(), abort.begin(), abort.end());
    for (size_t at = 0; at < sent.size();) {
      const iovec part{sent.data() + at, sent.size() - at};
      const ssize_t taken = pair.dialer.tls->Write(std::span(&part, 1));
      ASSERT_GT(taken, 0) << "the socket has no room";
      at += static_cast<size_t>(taken);
    }
    ASSERT_FALSE(pair.dialer.tls->has_unsent());
    const SteadyTime now{};
    Ear handler;
    Link link(0, &handler);
    link.Attach(std::move(pair.acceptor.fd), now, std::move(pair.acceptor.tls));
    link.UseTcp();
    ASSERT_TRUE(link.Read(now).ok());
    ASSERT_TRUE(link.held_back());
    ASSERT_TRUE(link.ReadAhead(now).ok()) << "one gulp holds it all";
    pollfd readable{link.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, 0), 0) << "the kernel still has it";
    EXPECT_TRUE(link.unblocked());
    ASSERT_TRUE(link.Read(now).ok());
    EXPECT_EQ(link.ReadAhead(now).ok(), !aborts);
    EXPECT_FALSE(link.unblocked()) << "it would spin";
  }
}

// Else an operation would end, and nobody would send it before the next.
TEST(EncryptedLinkTest, HasWorkUntilTheSocketHasTakenWhatIsEncrypted) {
  EncryptedPair pair;
  ASSERT_EQ(pair.acceptor.tls->Handshake(), IoState::kComplete);
  const int small = 4096;
  setsockopt(pair.dialer.fd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  const SteadyTime now{};
  Indifferent handler;
  Link link(1, &handler);
  link.Attach(std::move(pair.dialer.fd), now, std::move(pair.dialer.tls));
  link.UseTcp();
  const std::vector<std::byte> data(TlsStream::kGulpBytes / 2);
  link.QueueData({.type = FrameType::kData, .length = data.size()}, data);
  ASSERT_TRUE(link.Write(now).ok());
  ASSERT_EQ(link.bytes_sent(), data.size()) << "not all of it is encrypted";
  std::vector<std::byte> got(kFrameHeaderBytes + data.size());
  size_t done = 0;
  while (true) {
    const IoState state = pair.acceptor.tls->Read(got, &done);
    if (state == IoState::kComplete) break;
    ASSERT_EQ(state, IoState::kWouldBlock) << pair.acceptor.tls->error();
    ASSERT_TRUE(link.has_work());
    EXPECT_TRUE(link.interest(false) & POLLOUT);
    EXPECT_FALSE(link.Delivered(now));  // which writes
  }
  ASSERT_TRUE(link.Write(now).ok());
  EXPECT_FALSE(link.has_work());
  EXPECT_FALSE(link.has_queued());
  EXPECT_FALSE(link.interest(false) & POLLOUT);
}

TEST(EncryptedLinkTest, DataThatNobodyTakesIsLostAndASignOfLifeIsNot) {
  for (const bool data : {true, false}) {
    EncryptedPair pair;
    ASSERT_EQ(pair.acceptor.tls->Handshake(), IoState::kComplete);
    FrameHeaderBytes header = EncodeFrameHeader({.type = FrameType::kGoodbye});
    const iovec part{header.data(), header.size()};
    ASSERT_EQ(pair.acceptor.tls->Write(std::span(&part, 1)), static_cast<ssize_t>(header.size()));
    pair.acceptor.fd.Reset();
    const SteadyTime now{};
    Indifferent handler;
    Link link(1, &handler);
    link.Attach(std::move(pair.dialer.fd), now, std::move(pair.dialer.tls));
    link.UseTcp();
    if (data) {
      link.QueueData({.type = FrameType::kData}, {});
    } else {
      link.QueueControl({.type = FrameType::kAlive}, "");
    }
    EXPECT_EQ(link.Write(now).ok(), !data);
    EXPECT_TRUE(link.left());
  }
}

// What is encrypted is in no queue any more, and still not the peer's.
TEST(EncryptedLinkTest, DataThatTheSocketHasNotTakenIsLostWithAPeerThatLeaves) {
  EncryptedPair pair;
  ASSERT_EQ(pair.acceptor.tls->Handshake(), IoState::kComplete);
  const int small = 4096;
  setsockopt(pair.dialer.fd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  const SteadyTime now{};
  Indifferent handler;
  Link link(1, &handler);
  link.Attach(std::move(pair.dialer.fd), now, std::move(pair.dialer.tls));
  link.UseTcp();
  const std::vector<std::byte> data(TlsStream::kGulpBytes / 2);
  link.QueueData({.type = FrameType::kData, .length = data.size()}, data);
  ASSERT_TRUE(link.Write(now).ok());
  ASSERT_EQ(link.bytes_sent(), data.size()) << "not all of it is encrypted";
  ASSERT_TRUE(link.has_queued()) << "the socket has taken all";
  FrameHeaderBytes header = EncodeFrameHeader({.type = FrameType::kGoodbye});
  const iovec part{header.data(), header.size()};
  ASSERT_EQ(pair.acceptor.tls->Write(std::span(&part, 1)), static_cast<ssize_t>(header.size()));
  pair.acceptor.fd.Reset();
  EXPECT_EQ(link.Write(now).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(link.left());
}

// Both ends of a connection over loopback.
struct TcpPair {
  TcpPair() {
    const auto listening = ListenAt(*ParseAddress("127.0.0.1:0"));
    const auto address = LocalAddress(listening->get());
    dialing = *StartConnecting(*address, SocketAddress());
    pollfd writable{dialing.get(), POLLOUT, 0};
    EXPECT_EQ(poll(&writable, 1, kDeadlineMs), 1);
    accepted = UniqueFd(accept4(listening->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    EXPECT_TRUE(accepted.valid());
  }
  UniqueFd dialing;
  UniqueFd accepted;
};

TEST(TcpLinkTest, IsStuckWhileThePeersKernelHasNoRoomAndNotOnceThePeerIsGone) {
  TcpPair pair;
  Indifferent handler;
  Link link(1, &handler);
  const SteadyTime now{};
  link.Attach(std::move(pair.dialing), now);
  link.UseTcp();
  EXPECT_FALSE(link.IsStuck());
  const std::vector<std::byte> gulp(Link::kGulpBytes);
  while (!link.has_queued()) {
    link.QueueData({.type = FrameType::kData, .length = gulp.size()}, gulp);
    ASSERT_TRUE(link.Write(now).ok());
  }
  EXPECT_TRUE(link.IsStuck()) << "this kernel has no room either";
  link.DropWork(/*keep_partial=*/false);
  EXPECT_TRUE(link.IsStuck()) << "what this kernel has taken waits";
  pair.accepted.Reset();
  pollfd ended{link.fd(), 0, 0};
  ASSERT_EQ(poll(&ended, 1, kDeadlineMs), 1);
  EXPECT_FALSE(link.IsStuck());
}

// The message may be gone: not a byte of it follows, and nothing else can.
TEST(AbandonedLinkTest, ClosesAConnectionOnWhichAMessageIsHalfSentAndKeepsOthers) {
  const SteadyTime now{};
  for (const bool half : {true, false}) {
    Indifferent handler;
    Link link(1, &handler);
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    link.Attach(UniqueFd(fds[0]), now);
    const UniqueFd peer(fds[1]);
    link.UseTcp();
    const std::vector<std::byte> big(size_t{16} << 20);
    link.QueueControl({.type = FrameType::kAlive}, "");
    link.QueueData({.type = FrameType::kData, .length = big.size()}, big);
    if (half) {
      ASSERT_TRUE(link.Write(now).ok());
    }
    link.Abandon();
    EXPECT_EQ(link.attached(), !half);
    EXPECT_FALSE(link.has_work());
    EXPECT_EQ(link.has_queued(), !half) << "what is no message stays";
    EXPECT_TRUE(link.IsStuck()) << "until it is written, or for ever";
  }
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

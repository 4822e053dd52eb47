#include "runtime/collectives/transport/tcp/tls_stream.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace ringmaster::collectives::tcp {
namespace {

using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

Bytes RandomBytes(std::mt19937& random, size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Two ends of a connection, and between them a hand that may hold, cut or change what goes to the
// acceptor.
class TlsStreamTest : public ::testing::Test {
 protected:
  TlsStreamTest() {
    Pair(dialer_fd_, dialer_wire_);
    Pair(acceptor_fd_, acceptor_wire_);
    SetKeys(Sha256Of("key"), Sha256Of("key"));
  }

  void SetKeys(const Sha256Digest& dialers, const Sha256Digest& acceptors,
               uint64_t records_per_key = TlsStream::kRecordsPerKey) {
    dialer_ = std::make_unique<TlsStream>(TlsStream::Side::kDialer, dialer_fd_.get(), dialers,
                                          records_per_key);
    acceptor_ = std::make_unique<TlsStream>(TlsStream::Side::kAcceptor, acceptor_fd_.get(),
                                            acceptors, records_per_key);
  }

  static void Pair(UniqueFd& end, UniqueFd& wire) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    end = UniqueFd(fds[0]);
    wire = UniqueFd(fds[1]);
  }

  // What has come to one end of the wire.
  static Bytes TakeFrom(const UniqueFd& wire) {
    Bytes all;
    Bytes some(64 * 1024);
    for (ssize_t got; (got = recv(wire.get(), some.data(), some.size(), 0)) > 0;)
      all.insert(all.end(), some.begin(), some.begin() + got);
    return all;
  }
  static void Put(const UniqueFd& wire, std::span<const std::byte> bytes) {
    ASSERT_EQ(send(wire.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void Carry() {
    Put(acceptor_wire_, TakeFrom(dialer_wire_));
    Put(dialer_wire_, TakeFrom(acceptor_wire_));
  }

  // The last state of each side.
  std::pair<IoState, IoState> Handshake() {
    IoState dialers = IoState::kWouldBlock;
    IoState acceptors = IoState::kWouldBlock;
    for (int lap = 0; lap < 10; ++lap) {
      if (dialers == IoState::kWouldBlock) dialers = dialer_->Handshake();
      Carry();
      if (acceptors == IoState::kWouldBlock) acceptors = acceptor_->Handshake();
      Carry();
    }
    return {dialers, acceptors};
  }
  void ExpectHandshake() {
    EXPECT_EQ(Handshake(), std::pair(IoState::kComplete, IoState::kComplete))
        << dialer_->error() << ", " << acceptor_->error();
  }

  static ssize_t Write(TlsStream& stream, std::span<const std::byte> bytes) {
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return stream.Write(std::span(&part, 1));
  }

  UniqueFd dialer_fd_, dialer_wire_, acceptor_fd_, acceptor_wire_;
  std::unique_ptr<TlsStream> dialer_, acceptor_;
};

TEST_F(TlsStreamTest, WhoeverKnowsTheKeyIsTaken) {
  ExpectHandshake();
}

TEST_F(TlsStreamTest, ADialerWithAnotherKeyIsRefused) {
  SetKeys(Sha256Of("key"), Sha256Of("another key"));
  const auto [dialers, acceptors] = Handshake();
  EXPECT_EQ(acceptors, IoState::kFailed);
  EXPECT_THAT(acceptor_->error(), HasSubstr("binder does not verify"));
  EXPECT_EQ(dialers, IoState::kFailed);
  EXPECT_THAT(dialer_->error(), HasSubstr("alert"));
}

TEST_F(TlsStreamTest, BytesThatAreNoTlsAreNamedSo) {
  Put(acceptor_wire_, Bytes(100, std::byte{'R'}));
  EXPECT_EQ(acceptor_->Handshake(), IoState::kFailed);
  EXPECT_FALSE(acceptor_->error().empty());
  Put(dialer_wire_, Bytes(100, std::byte{'R'}));
  EXPECT_EQ(dialer_->Handshake(), IoState::kFailed);
  EXPECT_FALSE(dialer_->error().empty());
}

TEST_F(TlsStreamTest, APeerThatLeavesInTheHandshakeHasClosedTheConnection) {
  EXPECT_EQ(dialer_->Handshake(), IoState::kWouldBlock);
  const Bytes hello = TakeFrom(dialer_wire_);
  Put(acceptor_wire_, std::span(hello).first(hello.size() / 2));
  EXPECT_EQ(acceptor_->Handshake(), IoState::kWouldBlock);
  acceptor_wire_.Reset();
  EXPECT_EQ(acceptor_->Handshake(), IoState::kClosed);
}

TEST_F(TlsStreamTest, PartsOfAnyLengthComeAsTheyWereWrittenWhateverTheSocketTakes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  // New keys all the time.
  SetKeys(Sha256Of("key"), Sha256Of("key"), /*records_per_key=*/3);
  ExpectHandshake();
  const Bytes all = RandomBytes(random, 3'000'000);
  Bytes got(all.size());
  Bytes on_the_way;
  size_t written = 0;
  size_t read = 0;
  while (read < all.size()) {
    std::vector<iovec> parts;
    size_t end = written;
    for (int i = 0; i < 16 && end < all.size(); ++i) {
      const size_t longest[] = {0, 40, 3000, 16 * 1024, 200'000};
      const size_t length =
          std::min<size_t>(random() % (1 + longest[random() % 5]), all.size() - end);
      parts.push_back({const_cast<std::byte*>(all.data()) + end, length});
      end += length;
    }
    const ssize_t taken = dialer_->Write(parts);
    if (taken < 0) {
      ASSERT_EQ(errno, EAGAIN) << dialer_->error();
      ASSERT_TRUE(dialer_->has_unsent());
    } else {
      ASSERT_LE(written + static_cast<size_t>(taken), end);
      written += static_cast<size_t>(taken);
    }
    Bytes some(1 + random() % 100'000);
    const ssize_t carried = recv(dialer_wire_.get(), some.data(), some.size(), 0);
    if (carried > 0) on_the_way.insert(on_the_way.end(), some.begin(), some.begin() + carried);
    if (!on_the_way.empty()) {
      // As much as the acceptor's end has room for.
      const ssize_t arrived =
          send(acceptor_wire_.get(), on_the_way.data(), on_the_way.size(), MSG_NOSIGNAL);
      ASSERT_TRUE(arrived > 0 || errno == EAGAIN);
      if (arrived > 0) on_the_way.erase(on_the_way.begin(), on_the_way.begin() + arrived);
    }
    size_t done = 0;
    const size_t want = std::min<size_t>(1 + random() % 300'000, all.size() - read);
    const IoState state = acceptor_->Read(std::span(got).subspan(read, want), &done);
    ASSERT_TRUE(state == IoState::kComplete || state == IoState::kWouldBlock) << acceptor_->error();
    EXPECT_EQ(state == IoState::kComplete, done == want);
    read += done;
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(written, all.size());
  EXPECT_TRUE(got == all);
}

TEST_F(TlsStreamTest, NothingOfWhatIsWrittenIsOnTheWire) {
  ExpectHandshake();
  const std::string secret(500, 's');
  ASSERT_EQ(Write(*dialer_, std::as_bytes(std::span(secret))), 500);
  const Bytes wire = TakeFrom(dialer_wire_);
  EXPECT_GT(wire.size(), secret.size());
  const std::string text(reinterpret_cast<const char*>(wire.data()), wire.size());
  EXPECT_EQ(text.find("ssss"), std::string::npos);
}

TEST_F(TlsStreamTest, AByteThatWasChangedOnTheWayIsFoundByBothSides) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  ExpectHandshake();
  ASSERT_EQ(Write(*dialer_, RandomBytes(random, 1000)), 1000);
  Bytes wire = TakeFrom(dialer_wire_);
  wire[5 + random() % (wire.size() - 5)] ^= std::byte{1};  // behind the record's header
  Put(acceptor_wire_, wire);
  Bytes got(1000);
  size_t done = 0;
  EXPECT_EQ(acceptor_->Read(got, &done), IoState::kFailed);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_EQ(done, 0u);
  EXPECT_THAT(acceptor_->error(), HasSubstr("bad record mac"));
  EXPECT_EQ(Write(*acceptor_, got), -1);
  Carry();
  EXPECT_EQ(dialer_->Read(got, &done), IoState::kFailed);
  EXPECT_THAT(dialer_->error(), HasSubstr("alert bad record mac"));
}

TEST_F(TlsStreamTest, ARecordThatEndsTooEarlyIsNotDelivered) {
  ExpectHandshake();
  ASSERT_EQ(Write(*dialer_, Bytes(1000)), 1000);
  const Bytes wire = TakeFrom(dialer_wire_);
  EXPECT_GT(acceptor_->TakeReceived(), 0u) << "of the handshake";
  Put(acceptor_wire_, std::span(wire).first(wire.size() - 1));
  Bytes got(1000);
  size_t done = 0;
  EXPECT_EQ(acceptor_->Read(got, &done), IoState::kWouldBlock);
  EXPECT_EQ(acceptor_->TakeReceived(), wire.size() - 1) << "it is a sign of life all the same";
  acceptor_wire_.Reset();
  EXPECT_EQ(acceptor_->Read(got, &done), IoState::kClosed);
  EXPECT_EQ(done, 0u);
}

TEST_F(TlsStreamTest, AWriteToNobodyIsAnErrorAndNoSignal) {
  ExpectHandshake();
  dialer_wire_.Reset();
  EXPECT_EQ(Write(*dialer_, Bytes(1000)), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_FALSE(dialer_->has_unsent()) << "nothing will ever take it";
  EXPECT_EQ(Write(*dialer_, Bytes(1)), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_TRUE(dialer_->error().empty());
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

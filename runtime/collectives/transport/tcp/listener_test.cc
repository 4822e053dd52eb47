// Strangers, zombies and broken peers at a worker's port.
#include "runtime/collectives/transport/tcp/listener.h"

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/frame.h"
#include "runtime/collectives/transport/handshake.h"
#include "runtime/collectives/transport/tcp/acceptor.h"
#include "runtime/collectives/transport/tcp/socket.h"

namespace ringmaster::collectives::tcp {
namespace {

using collectives::testing::Group;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A peer made by hand, with blocking calls.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) {
    const auto target = ParseAddress(address);
    fd_ = UniqueFd(socket(target->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval timeout{static_cast<time_t>(collectives::testing::kPatience.count()), 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    EXPECT_EQ(connect(fd_.get(), target->get(), target->length), 0);
  }

  void Send(std::span<const std::byte> bytes) {
    EXPECT_EQ(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void Send(const std::string& text) { Send(std::as_bytes(std::span(text))); }

  // Whether the record came whole before the connection ended.
  bool Receive(std::span<std::byte> into) {
    return recv(fd_.get(), into.data(), into.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(into.size());
  }
  bool ClosedByPeer() {
    std::byte byte;
    return recv(fd_.get(), &byte, 1, 0) <= 0;
  }
  void Close() { fd_.Reset(); }
  // Whether or not the peer still listens.
  void Trickle(const std::string& text = "R") {
    send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }

  // The dialer's side of the handshake; the verdict that ended it, nothing if the peer just closed.
  std::optional<Verdict> Handshake(const Membership& self, int to_rank) {
    const HelloBytes hello = EncodeHello(MakeHello(self, to_rank));
    Send(hello);
    AnswerBytes answer_bytes;
    if (!Receive(answer_bytes)) return std::nullopt;
    const std::optional<Answer> answer = DecodeAnswer(answer_bytes);
    if (!answer || answer->verdict != Verdict::kAccepted)
      return answer ? answer->verdict : Verdict::kNotAHello;
    const Sha256Digest proof = DialerProof(self, to_rank, hello, answer->challenge);
    Send(std::as_bytes(std::span(proof)));
    uint32_t verdict = 0;
    if (!Receive(std::as_writable_bytes(std::span(&verdict, 1)))) return std::nullopt;
    return static_cast<Verdict>(verdict);
  }

 private:
  UniqueFd fd_;
};

// Rank 1 of two is real and has round 7 open; what dials it is made by hand.
class ListenerTest : public ::testing::Test {
 protected:
  ListenerTest() : group_(2) {
    group_.options.round = 7;
    group_.options.operation_timeout = std::chrono::milliseconds(5000);
    communicator_ = group_.Open(1);
  }

  // The next round.
  void Renew() {
    communicator_.reset();
    ++group_.options.round;
    communicator_ = group_.Open(1);
  }

  uint64_t round() const { return group_.options.round; }
  const std::string& address() const { return group_.options.members[1].address; }
  Membership Rank0() const { return group_.OptionsFor(0); }
  RefusalCounts refusals() { return group_.listener(1).acceptor().refusals(); }

  // The thread of the listener counts a little after the peer is let go.
  void ExpectRefusals(uint64_t count) {
    const auto deadline = std::chrono::steady_clock::now() + collectives::testing::kPatience;
    while (refusals().refused < count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(refusals().refused, count);
  }

  // The round still works: a real rank 0 joins and both pass a barrier.
  void ExpectUndisturbed() {
    collectives::testing::RunThreads(2, [&](int rank) {
      const auto made = rank == 0 ? group_.Open(0) : nullptr;
      Communicator& comm = rank == 0 ? *made : *communicator_;
      EXPECT_TRUE(comm.Barrier("undisturbed").ok()) << comm.status();
    });
  }

  Group group_;
  std::unique_ptr<Communicator> communicator_;
};

TEST_F(ListenerTest, GarbageIsRefusedLoggedOncePerSourceAndDisturbsNothing) {
  for (int i = 0; i < 50; ++i) {
    RawPeer peer(address());
    peer.Send("GET / HTTP/1.1\r\n" + std::string(kHelloBytes, 'x'));
    EXPECT_TRUE(peer.ClosedByPeer());
  }
  ExpectRefusals(50);
  EXPECT_EQ(refusals().logged, 1u);
  ExpectUndisturbed();
}

TEST_F(ListenerTest, AHealthCheckIsNoRefusal) {
  { RawPeer peer(address()); }
  RawPeer second(address());
  second.Send(std::string(kHelloBytes, 'x'));
  EXPECT_TRUE(second.ClosedByPeer());
  ExpectRefusals(1);
}

TEST_F(ListenerTest, HalfAHelloDisturbsNothing) {
  RawPeer stays(address());
  stays.Send("RINGMSTR");
  {
    RawPeer leaves(address());
    leaves.Send("RINGMSTR half a hello");
  }
  ExpectRefusals(1);
  ExpectUndisturbed();
}

TEST_F(ListenerTest, APeerThatStallsOrTricklesInTheHandshakeIsLetGo) {
  RawPeer stalls(address());
  stalls.Send("RINGMSTR");
  RawPeer trickles(address());
  const auto start = std::chrono::steady_clock::now();
  while (refusals().refused < 2 &&
         std::chrono::steady_clock::now() - start < collectives::testing::kPatience) {
    trickles.Trickle();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(stalls.ClosedByPeer());
  ExpectRefusals(2);
  ExpectUndisturbed();
}

TEST_F(ListenerTest, IdleStrangersDoNotLockPeersOut) {
  std::vector<std::unique_ptr<RawPeer>> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(std::make_unique<RawPeer>(address()));
    strangers.back()->Send("R");
  }
  ExpectUndisturbed();
  EXPECT_GE(refusals().refused, 44u) << "the oldest made room";
}

TEST_F(ListenerTest, AnOlderRoundIsRefusedAsOver) {
  Membership zombie = Rank0();
  zombie.round = 6;
  EXPECT_EQ(RawPeer(address()).Handshake(zombie, 1), Verdict::kRoundOver);
  ExpectUndisturbed();
}

TEST_F(ListenerTest, ANewerRoundIsToldToTryAgain) {
  Membership early = Rank0();
  early.round = 8;
  EXPECT_EQ(RawPeer(address()).Handshake(early, 1), Verdict::kNotYet);
  EXPECT_EQ(refusals().refused, 0u);
}

TEST_F(ListenerTest, ARoundThatWasLeftIsOver) {
  communicator_.reset();
  EXPECT_EQ(RawPeer(address()).Handshake(Rank0(), 1), Verdict::kRoundOver);
}

TEST_F(ListenerTest, AnUnknownPodAndAnotherJobAreRefused) {
  Membership other_pod = Rank0();
  other_pod.members[0].pod_uid = "uid-of-a-pod-that-was-replaced";
  EXPECT_EQ(RawPeer(address()).Handshake(other_pod, 1), Verdict::kNotAMember);
  Membership other_job = Rank0();
  other_job.job = "test/another";
  EXPECT_EQ(RawPeer(address()).Handshake(other_job, 1), Verdict::kWrongJob);
  ExpectUndisturbed();
}

TEST_F(ListenerTest, AWrongKeyIsRefused) {
  Membership wrong = Rank0();
  wrong.key = "not the key of this round";
  EXPECT_EQ(RawPeer(address()).Handshake(wrong, 1), Verdict::kWrongKey);
  ExpectRefusals(1);
  ExpectUndisturbed();
}

TEST_F(ListenerTest, ADialerRefusesAnAcceptorWithAWrongKey) {
  group_.options.key = "the dialer has another key";
  const auto dialer = group_.Open(0);
  const absl::Status status = dialer->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 1 ("), HasSubstr("key")));
}

TEST_F(ListenerTest, AZombiesOwnRoundFailsNamingTheReason) {
  communicator_.reset();
  group_.options.round = 8;
  communicator_ = group_.Open(1);
  group_.options.round = 7;
  const auto zombie = group_.Open(0);
  const absl::Status status = zombie->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 1 ("), HasSubstr("round that is over")));
}

// The second is for its last words.
TEST_F(ListenerTest, AThirdConnectionOfARankIsRefused) {
  RawPeer peers[] = {RawPeer(address()), RawPeer(address()), RawPeer(address())};
  EXPECT_EQ(peers[0].Handshake(Rank0(), 1), Verdict::kAccepted);
  EXPECT_EQ(peers[1].Handshake(Rank0(), 1), Verdict::kAccepted);
  peers[2].Handshake(Rank0(), 1);
  EXPECT_TRUE(peers[2].ClosedByPeer());
  ExpectRefusals(1);
}

TEST_F(ListenerTest, AnAbortOnASecondConnectionEndsTheRoundThoughTheFirstSaysNothing) {
  RawPeer first(address());
  EXPECT_EQ(first.Handshake(Rank0(), 1), Verdict::kAccepted);
  RawPeer second(address());
  EXPECT_EQ(second.Handshake(Rank0(), 1), Verdict::kAccepted);
  second.Send(AbortFrame(round(), {absl::AbortedError("rank 0 aborted the round: drain"), -1}));
  const absl::Status status = communicator_->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(Message(status), HasSubstr("drain"));
}

TEST_F(ListenerTest, ASecondConnectionThatSaysNothingAndEndsDisturbsNothing) {
  RawPeer first(address());
  EXPECT_EQ(first.Handshake(Rank0(), 1), Verdict::kAccepted);
  RawPeer second(address());
  EXPECT_EQ(second.Handshake(Rank0(), 1), Verdict::kAccepted);
  second.Close();
  first.Send(AbortFrame(round(), {absl::AbortedError("rank 0 aborted the round: drain"), -1}));
  EXPECT_THAT(Message(communicator_->Barrier("b")), HasSubstr("drain"));
}

TEST_F(ListenerTest, HalfAFrameEndsTheRoundNamingTheRank) {
  RawPeer peer(address());
  ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
  const FrameHeaderBytes header = EncodeFrameHeader({FrameType::kOperation, 7, 1, 0, 10});
  peer.Send(std::span(header).first(21));
  peer.Close();
  const absl::Status status = communicator_->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("middle of a frame")));
}

TEST_F(ListenerTest, GarbageAfterTheHandshakeEndsTheRoundNamingTheRank) {
  RawPeer peer(address());
  ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
  peer.Send(std::string(kFrameHeaderBytes, '!'));
  const absl::Status status = communicator_->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("not a frame")));
}

TEST_F(ListenerTest, AFrameOfAnotherRoundEndsTheRound) {
  RawPeer peer(address());
  ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
  peer.Send(EncodeFrameHeader({FrameType::kData, 6, 1, 0, 0}));
  EXPECT_THAT(Message(communicator_->Barrier("b")),
              HasSubstr("sent a frame of round 6 in round 7"));
}

TEST_F(ListenerTest, AFrameOfAnotherRoundOfAnyTypeEndsTheRound) {
  for (uint8_t type = 1; type <= static_cast<uint8_t>(FrameType::kCircle); ++type) {
    Renew();
    RawPeer peer(address());
    ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
    peer.Send(EncodeFrameHeader({static_cast<FrameType>(type), round() - 1, 1, 0, 0}));
    const absl::Status status = communicator_->Barrier("b");
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << int{type} << ": " << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("sent a frame of round"),
                                       HasSubstr("in operation 1")));
  }
}

TEST_F(ListenerTest, AWrongHashIsToldWithBothOperations) {
  RawPeer peer(address());
  ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
  const std::string text = "a sum of 7 apples";
  peer.Send(EncodeFrameHeader({FrameType::kOperation, 7, 1, 0x1234, text.size()}));
  peer.Send(text);
  const absl::Status status = communicator_->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("operation 1, " + text),
                                     HasSubstr("barrier of 0 uint8 \"b\"")));
}

// Frames that are well formed and mean nothing, half of them cut off.
TEST_F(ListenerTest, FramesOfAnyContentEndTheRoundNamingTheRank) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    Renew();
    RawPeer peer(address());
    ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
    std::string stream;
    bool aborts = false;
    for (uint64_t frames = 1 + random() % 5; frames > 0; --frames) {
      // Up to one type that there is not, and to one byte more than fits.
      const auto type = static_cast<FrameType>(1 + random() % 12);
      aborts = aborts || type == FrameType::kAbort;
      const uint64_t tags[] = {0, 1, 4096, random(), uint64_t{1} << 33 | random() % 20};
      const uint64_t length = random() % 8 == 0 ? kMaxControlBytes + random() % 2 : random() % 80;
      const FrameHeaderBytes header = EncodeFrameHeader(
          {type, round(), random() % 4, tags[random() % std::size(tags)], length});
      stream.append(reinterpret_cast<const char*>(header.data()), header.size());
      for (uint64_t i = 0; i < length; ++i) stream += static_cast<char>(random());
    }
    if (random() % 2 == 0) stream.resize(random() % stream.size());
    peer.Trickle(stream);
    peer.Close();
    const absl::Status status = communicator_->Barrier("b");
    ASSERT_FALSE(status.ok());
    // Whoever sends an abort says itself who is to blame.
    if (aborts) continue;
    ASSERT_THAT(Message(status), HasSubstr("rank 0 (")) << "trial " << trial;
    ASSERT_EQ(communicator_->suspect(), 0) << status;
  }
}

// A name in memory that can be taken away.
class Page {
 public:
  explicit Page(const std::string& text)
      : at_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        size_(text.size()) {
    EXPECT_NE(at_, MAP_FAILED);
    text.copy(static_cast<char*>(at_), size_);
  }
  ~Page() { munmap(at_, kBytes); }
  std::string_view text() const { return {static_cast<const char*>(at_), size_}; }
  void TakeAway() { EXPECT_EQ(mprotect(at_, kBytes, PROT_NONE), 0); }

 private:
  static constexpr size_t kBytes = 4096;
  void* const at_;
  const size_t size_;
};

// What its operation is called stands in the message, which is written where the goodbye finds the
// connection broken; the caller may have freed it.
TEST_F(ListenerTest, APeerMayDivergeAndDieWhenTheOperationAndItsNameAreGone) {
  group_.options.transport = TransportChoice::kTcp;
  Renew();
  RawPeer peer(address());
  ASSERT_EQ(peer.Handshake(Rank0(), 1), Verdict::kAccepted);
  peer.Send(EncodeFrameHeader({FrameType::kOffer, round(), 0, 0, 0}));
  Page name("loss");
  const std::vector<float> data(100);
  ASSERT_TRUE(communicator_->Send(0, data, name.text()).ok()) << communicator_->status();
  name.TakeAway();
  peer.Send(EncodeFrameHeader({FrameType::kOperation, round(), 1, 0x1234, 0}));
  peer.Close();  // with data that it has not read: the connection is reset
  communicator_.reset();
}

TEST(ListenerAddressTest, RefusesWhatIsNoNumericAddress) {
  for (const char* text : {"", "localhost:1", "127.0.0.1", "127.0.0.1:", ":1", "1.2.3.4:x"}) {
    EXPECT_EQ(Listener::Open(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ListenerAddressTest, NamesTheAddressThatIsTaken) {
  const auto first = Listener::Open(collectives::testing::LoopbackAddress(0));
  ASSERT_TRUE(first.ok());
  const auto second = Listener::Open((*first)->address());
  EXPECT_THAT(Message(second.status()), HasSubstr((*first)->address()));
}

}  // namespace
}  // namespace ringmaster::collectives::tcp

#include "common/framed_socket.h"

#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/temporary_folder.h"

namespace ringmaster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::pair<std::unique_ptr<FramedSocket>, std::unique_ptr<FramedSocket>> Pair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {std::make_unique<FramedSocket>(UniqueFd(fds[0])),
          std::make_unique<FramedSocket>(UniqueFd(fds[1]))};
}

TEST(FrameParserTest, FindsFramesThatArriveByteByByte) {
  const std::string wire = EncodeFrame("one") + EncodeFrame("") + EncodeFrame("three");
  FrameParser parser;
  std::vector<std::string> frames;
  for (const char byte : wire) {
    parser.Append(std::string_view(&byte, 1));
    while (true) {
      auto frame = parser.Next();
      ASSERT_TRUE(frame.ok()) << frame.status();
      if (!*frame) break;
      frames.push_back(**frame);
    }
  }
  EXPECT_EQ(frames, (std::vector<std::string>{"one", "", "three"}));
}

TEST(FrameParserTest, FindsManyFramesThatArriveAtOnce) {
  FrameParser parser;
  parser.Append(EncodeFrame("a") + EncodeFrame("b"));
  EXPECT_EQ(**parser.Next(), "a");
  EXPECT_EQ(**parser.Next(), "b");
  EXPECT_FALSE(parser.Next()->has_value());
}

TEST(FrameParserTest, RefusesALengthOverTheLimit) {
  FrameParser parser;
  parser.Append("\xff\xff\xff\x7f");
  EXPECT_EQ(parser.Next().status().code(), absl::StatusCode::kDataLoss);
}

TEST(FramedSocketTest, CarriesALargeMessageBothWays) {
  auto [a, b] = Pair();
  const std::string large(size_t{3} << 20, 'x');
  std::thread echo([&other = *b] {
    auto frame = other.ReceiveWithin(seconds(30));
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_TRUE(other.Send(*frame).ok());
  });
  EXPECT_TRUE(a->Send(large).ok());
  auto back = a->ReceiveWithin(seconds(30));
  echo.join();
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, large);
}

TEST(FramedSocketTest, GivesUpOnASideThatDoesNotRead) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  FramedSocket a(UniqueFd(fds[0]), milliseconds(20));
  const UniqueFd deaf(fds[1]);
  EXPECT_EQ(a.Send(std::string(size_t{8} << 20, 'x')).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(a.ReceiveWithin(seconds(30)).status().code(), absl::StatusCode::kUnavailable)
      << "half a frame is out, so nothing may follow";
}

TEST(FramedSocketTest, RefusesToSendMoreThanTheLimit) {
  auto [a, b] = Pair();
  EXPECT_EQ(a->Send(std::string(kMaxFrameBytes + 1, 'x')).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FramedSocketTest, TellsThatTheOtherSideIsGone) {
  auto [a, b] = Pair();
  b.reset();
  EXPECT_EQ(a->ReceiveWithin(seconds(30)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(a->Send("x").code(), absl::StatusCode::kUnavailable);
}

TEST(FramedSocketTest, ReturnsWhenNothingArrivesInTime) {
  auto [a, b] = Pair();
  EXPECT_EQ(a->ReceiveWithin(milliseconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(FramedSocketTest, WakesAReaderOnShutdown) {
  auto [a, b] = Pair();
  absl::Status end;
  std::thread reader([&end, &socket = *a] { end = socket.Receive().status(); });
  a->Shutdown();
  reader.join();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
}

TEST(FramedSocketTest, DialsAUnixSocket) {
  const TemporaryFolder folder = TemporaryFolder::Make().value();
  const std::string path = folder.path() / "s";
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);

  auto dialled = FramedSocket::Dial(path, seconds(30));
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  FramedSocket accepted(UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  ASSERT_TRUE((*dialled)->Send("hello").ok());
  EXPECT_EQ(*accepted.ReceiveWithin(seconds(30)), "hello");
}

TEST(FramedSocketTest, NamesThePathThatNobodyListensAt) {
  const auto dialled = FramedSocket::Dial("/nonexistent/s", seconds(1));
  EXPECT_EQ(dialled.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(dialled.status().message()).find("/nonexistent/s"), std::string::npos);
}

TEST(FramedSocketTest, RefusesAPathTooLongForASocket) {
  EXPECT_EQ(FramedSocket::Dial(std::string(200, 'p'), seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ringmaster

// A pod's log from a server that breaks off and is asked again.
#include "cli/kubectl/pod_log_reader.h"

#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_http_server.h"

namespace ringmaster::cli::kubectl {
namespace {

using std::chrono_literals::operator""ms;
using ringmaster::testing::Answer;
using ringmaster::testing::HttpScript;
using ringmaster::testing::ScriptedHttpServer;
using ringmaster::testing::ServedRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFirst[] = "2026-01-01T00:00:01.000000001Z";
constexpr char kSecond[] = "2026-01-01T00:00:01.500000000Z";
constexpr char kThird[] = "2026-01-01T00:00:02.000000000Z";

TEST(LinesSeenTest, HandsOutEachLineOnceAcrossRestarts) {
  LinesSeen seen;
  EXPECT_FALSE(seen.Skip(kFirst));
  EXPECT_FALSE(seen.Skip(kSecond));
  EXPECT_FALSE(seen.Skip(kSecond));
  EXPECT_EQ(seen.last_time(), kSecond);
  seen.Restart();  // the server begins again at the whole second
  EXPECT_TRUE(seen.Skip(kFirst));
  EXPECT_TRUE(seen.Skip(kSecond));
  EXPECT_TRUE(seen.Skip(kSecond));
  EXPECT_FALSE(seen.Skip(kSecond)) << "a third line of the same time";
  EXPECT_FALSE(seen.Skip(kThird));
  seen.Restart();
  EXPECT_TRUE(seen.Skip(kThird));
  EXPECT_FALSE(seen.Skip(kThird));
}

TEST(LinesSeenTest, WithoutTimesNothingIsLeftOut) {
  LinesSeen seen;
  seen.Restart();
  EXPECT_FALSE(seen.Skip("not a time"));
  EXPECT_FALSE(seen.Skip(""));
  EXPECT_EQ(seen.last_time(), "");
}

class PodLogReaderTest : public ::testing::Test {
 protected:
  PodLogReaderTest() {
    kube::rest::RestOptions options;
    options.max_attempts = 1;
    client_ = *kube::rest::RestClient::Connect({.server = server_.url()}, options);
  }

  // Polls until the log is over.
  std::vector<std::string> ReadAll(PodLogReader& reader) {
    std::vector<std::string> lines;
    const SteadyTime deadline = SteadyTime::clock::now() + std::chrono::seconds(20);
    while (!reader.over() && SteadyTime::clock::now() < deadline) {
      const absl::Status status =
          reader.Poll([&](std::string_view line) { lines.emplace_back(line); });
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
      reader.Refresh(/*container_ended=*/true);
    }
    EXPECT_TRUE(reader.over());
    return lines;
  }

  static HttpScript CutAfter(const std::string& text) {
    return [=](ServedRequest& request) {
      request.Send(
          fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
                      text.size(), text));
      request.Close();
    };
  }

  ScriptedHttpServer server_;
  std::unique_ptr<kube::rest::RestClient> client_;
};

TEST_F(PodLogReaderTest, FollowedLogThatBreaksGoesOnWhereItWas) {
  const std::string first = fmt::format("{} a\n{} b\n", kFirst, kSecond);
  server_.Script({CutAfter(first + kThird + " hal"),
                  Answer(200, fmt::format("{}{} half\n{} \n", first, kThird, kThird))});
  PodLogReader reader(*client_, {"ml", "p"},
                      {.container = "worker", .tail_lines = 9, .follow = true});
  EXPECT_THAT(ReadAll(reader), ElementsAre("a", "b", "half", ""));
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_THAT(requests[0].target, HasSubstr("tailLines=9"));
  EXPECT_THAT(requests[1].target, HasSubstr("sinceTime=2026-01-01T00%3A00%3A01.5"));
  EXPECT_THAT(requests[1].target, Not(HasSubstr("tailLines")));
}

TEST_F(PodLogReaderTest, EndOfTheLogOfAContainerThatRunsIsNone) {
  server_.Script({Answer(200, fmt::format("{} a\n", kFirst)),
                  Answer(200, fmt::format("{} a\n{} b\n", kFirst, kSecond))});
  PodLogReader reader(*client_, {"ml", "p"}, {.follow = true});
  std::vector<std::string> lines;
  const auto line = [&](std::string_view text) { lines.emplace_back(text); };
  while (lines.empty()) ASSERT_TRUE(reader.Poll(line).ok());
  reader.Refresh(/*container_ended=*/true);
  EXPECT_THAT(ReadAll(reader), ElementsAre("b"));
}

TEST_F(PodLogReaderTest, LogOfAPodThatIsGoneIsOverWithItsConnection) {
  server_.Script({Answer(200, fmt::format("{} a\n", kFirst))});
  PodLogReader reader(*client_, {"ml", "p"}, {.follow = true});
  std::vector<std::string> lines;
  while (lines.empty()) {
    ASSERT_TRUE(reader.Poll([&](std::string_view text) { lines.emplace_back(text); }).ok());
  }
  reader.Abandon();
  ReadAll(reader);
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(PodLogReaderTest, LogThatIsNotFollowedSaysThatItBroke) {
  server_.Script({CutAfter(fmt::format("{} a\n", kFirst))});
  PodLogReader reader(*client_, {"ml", "p"}, {});
  std::vector<std::string> lines;
  const absl::Status status = reader.Poll([&](std::string_view line) { lines.emplace_back(line); });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(lines, ElementsAre("a"));
  EXPECT_FALSE(reader.over());
}

TEST_F(PodLogReaderTest, TimestampsAreShownOnRequestAndStrangeLinesAsTheyAre) {
  server_.Script({Answer(200, fmt::format("{} a\nno time here\n", kFirst))});
  PodLogReader reader(*client_, {"ml", "p"}, {.timestamps = true});
  EXPECT_THAT(ReadAll(reader), ElementsAre(std::string(kFirst) + " a", "no time here"));
}

TEST_F(PodLogReaderTest, PodThatIsGoneIsAnError) {
  server_.Script({Answer(404, R"({"kind": "Status", "reason": "NotFound", "code": 404})")});
  PodLogReader reader(*client_, {"ml", "p"}, {});
  const absl::Status status = reader.Poll([](std::string_view) {});
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace ringmaster::cli::kubectl

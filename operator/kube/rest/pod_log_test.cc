// Logs of pods from a server that answers well and badly.
#include "operator/kube/rest/pod_log.h"

#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/rest/rest_client.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ringmaster::testing::Answer;
using ringmaster::testing::ScriptedHttpServer;
using ringmaster::testing::ServedRequest;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kPatience{20'000};
constexpr char kHead[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const ObjectKey kKey{"ml", "digits-0-0"};

std::string Chunk(const std::string& bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

class PodLogTest : public ::testing::Test {
 protected:
  PodLogTest() {
    RestOptions options;
    options.first_backoff = 1ms;
    options.max_attempts = 2;
    options.max_event_bytes = 1000;
    client_ = *RestClient::Connect({.server = server_.url()}, options);
  }

  std::unique_ptr<LogStream> Open(const LogOptions& options = {}) {
    auto log = client_->Log(kKey, options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }

  static std::string Line(LogStream& log) {
    const auto line = log.Next(kPatience);
    EXPECT_TRUE(line.ok()) << line.status();
    EXPECT_TRUE(line.ok() && line->has_value());
    return line.ok() ? line->value_or("") : "";
  }

  ScriptedHttpServer server_;
  std::unique_ptr<RestClient> client_;
};

TEST_F(PodLogTest, AsksForWhatIsWanted) {
  server_.Otherwise(Answer(200, ""));
  Open();
  Open({.container = "worker",
        .follow = true,
        .timestamps = true,
        .tail_lines = 0,
        .since_time = "2026-01-01T00:00:00Z"});
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].target, "/api/v1/namespaces/ml/pods/digits-0-0/log");
  EXPECT_EQ(requests[1].target,
            "/api/v1/namespaces/ml/pods/digits-0-0/log?container=worker&follow=true&"
            "timestamps=true&tailLines=0&sinceTime=2026-01-01T00%3A00%3A00Z");
}

TEST_F(PodLogTest, HandsOutLinesAsTheyComeAndTheLastOneWithoutItsEnd) {
  server_.Otherwise([](ServedRequest& request) {
    request.Send(kHead);
    request.Send(Chunk("one\ntwo, be"));
    request.Send(Chunk("gun\n\nlast words"));
    request.Send("0\r\n\r\n");
  });
  const auto log = Open();
  EXPECT_EQ(Line(*log), "one");
  EXPECT_EQ(Line(*log), "two, begun");
  EXPECT_EQ(Line(*log), "");
  EXPECT_EQ(Line(*log), "last words");
  for (int again = 0; again < 2; ++again) {
    const auto end = log->Next(kPatience);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_FALSE(end->has_value());
  }
}

TEST_F(PodLogTest, EmptyLogIsOverAtOnce) {
  server_.Otherwise(Answer(200, ""));
  const auto end = Open()->Next(kPatience);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
}

TEST_F(PodLogTest, BrokenConnectionIsNoEndAndHalfALineIsNone) {
  server_.Otherwise([](ServedRequest& request) {
    request.Send(kHead);
    request.Send(Chunk("one\nhal"));
    request.Close();
  });
  const auto log = Open();
  EXPECT_EQ(Line(*log), "one");
  const auto end = log->Next(kPatience);
  EXPECT_TRUE(absl::IsUnavailable(end.status())) << end.status();
  EXPECT_THAT(Message(end.status()), HasSubstr("log of ml/digits-0-0: "));
}

TEST_F(PodLogTest, QuietLogCanBeAskedAgain) {
  server_.Otherwise([](ServedRequest& request) {
    request.Send(kHead);
    request.AwaitClosed(kPatience);
    request.Close();
  });
  const auto log = Open({.follow = true});
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(log->Next(0ms).status()));
  }
}

TEST_F(PodLogTest, LineWithoutAnEndIsRefusedBeforeItFillsTheMemory) {
  server_.Otherwise([](ServedRequest& request) {
    request.Send(kHead);
    while (request.Send(Chunk(std::string(1 << 16, 'x')))) {
    }
    request.Close();
  });
  const auto end = Open()->Next(kPatience);
  EXPECT_TRUE(absl::IsOutOfRange(end.status())) << end.status();
  EXPECT_THAT(Message(end.status()), HasSubstr("a line has more than 1000 bytes"));
}

TEST_F(PodLogTest, RefusalIsTheServersOwn) {
  const Json status = {{"kind", "Status"},
                       {"code", 400},
                       {"reason", "BadRequest"},
                       {"message", "container \"worker\" in pod \"digits-0-0\" is waiting"}};
  server_.Otherwise(Answer(400, status.dump()));
  const auto log = client_->Log(kKey, {});
  EXPECT_TRUE(absl::IsInvalidArgument(log.status())) << log.status();
  EXPECT_THAT(Message(log.status()), HasSubstr("is waiting"));
}

TEST_F(PodLogTest, ScaleIsAPatchOfTheSubresource) {
  server_.Otherwise(Answer(200, R"({"spec":{"replicas":3}})"));
  EXPECT_TRUE(client_->Scale(kTrainingJob, {"ml", "digits"}, 3).ok());
  const auto request = server_.requests().at(0);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target,
            "/apis/training.ringmaster.dev/v1alpha1/namespaces/ml/trainingjobs/digits/scale");
  EXPECT_EQ(request.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(request.body, R"({"spec":{"replicas":3}})");
}

}  // namespace
}  // namespace ringmaster::kube::rest

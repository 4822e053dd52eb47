// Watches of a server that answers badly.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/rest_client.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ringmaster::testing::Answer;
using ringmaster::testing::HttpScript;
using ringmaster::testing::ScriptedHttpServer;
using ringmaster::testing::ServedRequest;

constexpr std::chrono::milliseconds kPatience{20'000};
constexpr char kHead[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunk(const std::string& bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string EventLine(const std::string& type, const std::string& name, std::size_t padding = 0) {
  const Json object = {{"metadata", {{"name", name}, {"resourceVersion", name}}},
                       {"padding", std::string(padding, 'x')}};
  return Json({{"type", type}, {"object", object}}).dump() + "\n";
}

// Sends the head and these bytes, then stays silent until the client goes.
HttpScript Stream(std::vector<std::string> pieces) {
  return [=](ServedRequest& request) {
    request.Send(kHead);
    for (const std::string& piece : pieces) request.Send(Chunk(piece));
    request.AwaitClosed(kPatience);
    request.Close();
  };
}

HttpScript CutStream(std::vector<std::string> pieces) {
  return [=](ServedRequest& request) {
    request.Send(kHead);
    for (const std::string& piece : pieces) request.Send(Chunk(piece));
    request.Close();
  };
}

class RestWatchTest : public ::testing::Test {
 protected:
  static RestOptions Quick() {
    RestOptions options;
    options.first_backoff = 1ms;
    options.max_backoff = 5ms;
    options.max_attempts = 2;
    options.qps = 0;
    return options;
  }

  void Connect(const RestOptions& options = Quick()) {
    client_ = *RestClient::Connect({.server = server_.url()}, options);
  }

  std::unique_ptr<WatchStream> Watch() {
    auto stream = client_->Watch(kPod, "default", {.resource_version = "5"});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return stream.ok() ? *std::move(stream) : nullptr;
  }

  ScriptedHttpServer server_;
  std::unique_ptr<RestClient> client_;
};

TEST_F(RestWatchTest, DeliversEventsHoweverTheyAreCut) {
  const std::string all = EventLine("ADDED", "1") + EventLine("MODIFIED", "2") +
                          EventLine("DELETED", "3") + EventLine("BOOKMARK", "4");
  std::vector<std::string> bytes;
  for (const char c : all) bytes.emplace_back(1, c);
  server_.Script({Stream({all}), Stream(bytes)});
  Connect();
  for (int i = 0; i < 2; ++i) {
    const auto stream = Watch();
    for (const WatchEventType type : {WatchEventType::kAdded, WatchEventType::kModified,
                                      WatchEventType::kDeleted, WatchEventType::kBookmark}) {
      const auto event = stream->Next(kPatience);
      ASSERT_TRUE(event.ok()) << event.status();
      EXPECT_EQ(event->type, type);
    }
  }
  EXPECT_EQ(server_.requests()[0].target,
            "/api/v1/namespaces/default/pods?watch=true&resourceVersion=5&allowWatchBookmarks=true&"
            "timeoutSeconds=300");
}

TEST_F(RestWatchTest, AWatchThatIsCutGivesWhatCameAndIsOver) {
  const std::string half = EventLine("ADDED", "2").substr(0, 20);
  server_.Script({CutStream({EventLine("ADDED", "1"), half})});
  Connect();
  const auto stream = Watch();
  const auto event = stream->Next(kPatience);
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(Name(*event->object), "1");
  EXPECT_EQ(stream->Next(kPatience).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream->Next(0ms).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RestWatchTest, AWatchThatTheServerEndsIsOver) {
  server_.Script({[](ServedRequest& request) { request.Send(std::string(kHead) + "0\r\n\r\n"); }});
  Connect();
  EXPECT_EQ(Watch()->Next(kPatience).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RestWatchTest, AnExpiredPositionIsSaidFromTheOpeningOrTheStream) {
  const std::string expired = R"({"kind": "Status", "code": 410, "reason": "Expired"})";
  server_.Script(
      {Answer(410, expired),
       Stream({EventLine("ADDED", "1"), R"({"type": "ERROR", "object": )" + expired + "}\n"})});
  Connect();
  const auto refused = client_->Watch(kPod, "default", {.resource_version = "1"});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Reason(refused.status()), kReasonExpired);
  const auto stream = Watch();
  EXPECT_TRUE(stream->Next(kPatience).ok());
  const auto status = stream->Next(kPatience).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Reason(status), kReasonExpired);
}

TEST_F(RestWatchTest, GarbageEndsTheStream) {
  for (const char* line :
       {"<<<\n", "[]\n", "{}\n", "{\"type\": \"ADDED\"}\n",
        "{\"type\": \"SEEN\", \"object\": {}}\n", "{\"type\": \"ERROR\", \"object\": {}}\n"}) {
    server_.Script({Stream({line})});
    Connect();
    EXPECT_EQ(Watch()->Next(kPatience).status().code(), absl::StatusCode::kUnavailable) << line;
  }
}

TEST_F(RestWatchTest, ASilentServerEndsNothingBeforeItsTime) {
  RestOptions options = Quick();
  options.watch_idle_timeout = 3s;
  server_.Otherwise(Stream({}));
  Connect(options);
  const auto stream = Watch();
  EXPECT_EQ(stream->Next(0ms).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(stream->Next(50ms).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(stream->Next(kPatience).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RestWatchTest, AServerThatDoesNotEvenBeginIsGivenUp) {
  RestOptions options = Quick();
  options.attempt_timeout = 100ms;
  server_.Otherwise([](ServedRequest& request) {
    request.AwaitClosed(kPatience);
    request.Close();
  });
  Connect(options);
  const auto stream = client_->Watch(kPod, "", {.resource_version = "1"});
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kDeadlineExceeded) << stream.status();
  EXPECT_EQ(server_.AwaitRequests(2, kPatience), 2u);
}

TEST_F(RestWatchTest, StopWakesTheReaderAndClosesTheConnection) {
  std::atomic<bool> closed{false};
  server_.Otherwise([&](ServedRequest& request) {
    request.Send(kHead);
    closed = request.AwaitClosed(kPatience);
    request.Close();
  });
  Connect();
  const auto stream = Watch();
  absl::Status ended;
  std::thread reader([&] { ended = stream->Next(std::chrono::milliseconds::max()).status(); });
  stream->Stop();
  reader.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << ended;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!closed && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(closed);
}

TEST_F(RestWatchTest, AWatchOutlivesItsClientAndIsThenStopped) {
  server_.Otherwise(Stream({EventLine("ADDED", "1")}));
  Connect();
  const auto stream = Watch();
  client_.reset();
  EXPECT_EQ(stream->Next(kPatience).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(RestWatchTest, AnEventOverItsBoundMeansToListAgain) {
  RestOptions options = Quick();
  options.max_event_bytes = 10'000;
  server_.Otherwise([](ServedRequest& request) {
    request.Send(std::string(kHead) + Chunk(EventLine("ADDED", "1")));
    const std::string endless = Chunk(std::string(1000, 'x'));
    while (request.Send(endless)) continue;
    request.Close();
  });
  Connect(options);
  const auto stream = Watch();
  EXPECT_TRUE(stream->Next(kPatience).ok());
  EXPECT_EQ(stream->Next(kPatience).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(RestWatchTest, AReaderThatLagsStopsTheServerAndLosesNothing) {
  constexpr int kEvents = 400;
  constexpr std::size_t kPadding = 100'000;  // 40 MB in all
  std::atomic<int> sent{0};
  server_.Otherwise([&](ServedRequest& request) {
    request.Send(kHead);
    for (int i = 1;
         i <= kEvents && request.Send(Chunk(EventLine("ADDED", std::to_string(i), kPadding)));
         ++i) {
      ++sent;
    }
    request.AwaitClosed(kPatience);
    request.Close();
  });
  Connect();
  const auto stream = Watch();
  ASSERT_TRUE(stream->Next(kPatience).ok());
  // The sender comes to rest: what it can send is what the buffers of both sides hold.
  int before = -1;
  while (before != sent) {
    before = sent;
    std::this_thread::sleep_for(200ms);  // a pause that a sender who is not stopped does not make
  }
  EXPECT_LT(sent, kEvents / 2);
  for (int i = 2; i <= kEvents; ++i) {
    const auto event = stream->Next(kPatience);
    ASSERT_TRUE(event.ok()) << i << ": " << event.status();
    ASSERT_EQ(Name(*event->object), std::to_string(i));
  }
}

}  // namespace
}  // namespace ringmaster::kube::rest

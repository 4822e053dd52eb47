// The service over real gRPC on the loopback. What silence means is decided by a clock that stands
// still unless the test turns it.
#include "operator/rendezvous/server.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "common/contract.h"
#include "common/file.h"
#include "operator/rendezvous/testing/worker_client.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::MakeExited;
using testing::MakeHello;
using testing::MakeProgress;
using testing::MakeReady;
using testing::MakeShard;
using testing::WorkerClient;

const kube::ObjectKey kJob{"default", "digits"};
constexpr auto kPatience = seconds(30);

kube::Json Pod(const std::string& name, const std::string& uid) {
  return {{"metadata",
           {{"name", name},
            {"namespace", "default"},
            {"uid", uid},
            {"labels", {{contract::kLabelJob, "digits"}}}}},
          {"status", {{"phase", "Running"}}}};
}

// Pods as an informer would hold them.
class Pods {
 public:
  void Put(const kube::Json& pod) {
    std::lock_guard lock(mutex_);
    pods_[pod["metadata"]["name"]] = std::make_shared<const kube::Json>(pod);
  }
  kube::ObjectPtr Get(const kube::ObjectKey& key) {
    std::lock_guard lock(mutex_);
    const auto found = pods_.find(key.name);
    return found == pods_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, kube::ObjectPtr> pods_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    pods_.Put(Pod("w0", "u0"));
    pods_.Put(Pod("w1", "u1"));
    Start("127.0.0.1:0");
  }

  void Start(const std::string& address) { Start(address, clock_, seconds(5)); }

  void Start(const std::string& address, const Clock& clock, Duration timeout,
             kube::TokenReviewer* reviewer = nullptr) {
    auto server = Server::Start({.address = address,
                                 .secret = "secret",
                                 .timing = {.heartbeat = milliseconds(50), .timeout = timeout},
                                 .reviewer = reviewer},
                                clock, verifier_, [this](const kube::ObjectKey&) {
                                  std::lock_guard lock(mutex_);
                                  changed_.notify_all();
                                });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Waits until the view satisfies the condition; a change of it wakes the waiter.
  template <typename Condition>
  bool Eventually(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [&] { return condition(server_->link().SnapshotFor(kJob)); });
  }

  bool Connected(const std::string& uid, bool wanted) {
    return Eventually([&](const reconcile::WorkersView& view) {
      for (const reconcile::WorkerView& worker : view.workers) {
        if (worker.pod_uid == uid) return worker.connected == wanted;
      }
      return false;
    });
  }

  std::unique_ptr<WorkerClient> Join(const std::string& pod, const std::string& uid,
                                     std::int64_t round = 0) {
    auto client = std::make_unique<WorkerClient>(server_->address());
    client->Hello(MakeHello(pod, uid, round));
    const auto answer = client->Next();
    EXPECT_TRUE(answer && answer->has_accepted()) << "no Accepted";
    return client;
  }

  static reconcile::Announcement Round(std::int64_t number) {
    return {.round = number,
            .members = {{0, "w0", "u0", "127.0.0.2:7473"}, {1, "w1", "u1", "127.0.0.3:7473"}},
            .shards = 8,
            .checkpoints = {{.step = 40, .round = 1, .digest = "d", .world_size = 2}}};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  FakeClock clock_;
  Pods pods_;
  ObjectPodVerifier verifier_{[this](const kube::ObjectKey& key) { return pods_.Get(key); }};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, ReportsTheFreePortThatItTook) {
  EXPECT_GT(server_->port(), 0);
  EXPECT_EQ(server_->address(), "127.0.0.1:" + std::to_string(server_->port()));
}

TEST_F(ServerTest, SaysThatThePortIsTaken) {
  auto second = Server::Start({.address = server_->address(), .secret = "s"}, clock_, verifier_,
                              [](const kube::ObjectKey&) {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ServerTest, RefusesAnAddressThatIsNone) {
  auto server = Server::Start({.address = "everywhere", .secret = "s"}, clock_, verifier_,
                              [](const kube::ObjectKey&) {});
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerTest, CarriesReadyAndProgressUp) {
  const auto worker = Join("w0", "u0");
  worker->Send(MakeReady("127.0.0.2:7473"));
  worker->Send(MakeProgress(1, 12));
  EXPECT_TRUE(Eventually([](const reconcile::WorkersView& view) {
    return !view.workers.empty() && view.workers[0].ready && view.workers[0].progress &&
           view.workers[0].ready->address == "127.0.0.2:7473" &&
           view.workers[0].progress->step == 12;
  }));
}

TEST_F(ServerTest, RefusesAPodOfAnotherUid) {
  WorkerClient client(server_->address());
  client.Hello(MakeHello("w0", "u0-of-yesterday"));
  const auto answer = client.Next();
  ASSERT_TRUE(answer && answer->has_refused());
  EXPECT_TRUE(answer->refused().permanent());
  EXPECT_EQ(answer->refused().reason(), "pod default/w0 has the UID u0 now, not u0-of-yesterday");
  EXPECT_EQ(client.WaitForEnd().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServerTest, RefusesATerminatingPod) {
  kube::Json pod = Pod("w0", "u0");
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  pods_.Put(pod);
  WorkerClient client(server_->address());
  client.Hello(MakeHello("w0", "u0"));
  const auto answer = client.Next();
  ASSERT_TRUE(answer && answer->has_refused());
  EXPECT_TRUE(answer->refused().permanent());
}

TEST_F(ServerTest, RefusesAPodOfAnotherJob) {
  kube::Json pod = Pod("w0", "u0");
  pod["metadata"]["labels"][contract::kLabelJob] = "other";
  pods_.Put(pod);
  WorkerClient client(server_->address());
  client.Hello(MakeHello("w0", "u0"));
  const auto answer = client.Next();
  ASSERT_TRUE(answer && answer->has_refused());
  EXPECT_EQ(answer->refused().reason(), "pod default/w0 does not belong to job default/digits");
}

TEST_F(ServerTest, RefusesAPodThatHasEnded) {
  kube::Json pod = Pod("w0", "u0");
  pod["status"]["phase"] = "Failed";
  pods_.Put(pod);
  WorkerClient client(server_->address());
  client.Hello(MakeHello("w0", "u0"));
  const auto answer = client.Next();
  ASSERT_TRUE(answer && answer->has_refused());
}

TEST_F(ServerTest, TellsAnUnknownPodToTryAgain) {
  WorkerClient client(server_->address());
  client.Hello(MakeHello("w9", "u9"));
  const auto answer = client.Next();
  ASSERT_TRUE(answer && answer->has_refused());
  EXPECT_FALSE(answer->refused().permanent());
}

TEST_F(ServerTest, EndsTheOlderStreamOfTheSamePod) {
  const auto older = Join("w0", "u0");
  const auto newer = Join("w0", "u0");
  EXPECT_EQ(older->WaitForEnd().error_code(), grpc::StatusCode::ABORTED);
  newer->Send(MakeProgress(1, 3));
  EXPECT_TRUE(Eventually([](const reconcile::WorkersView& view) {
    return view.workers[0].connected && view.workers[0].progress;
  }));
}

TEST_F(ServerTest, EndsASilentStream) {
  Start("127.0.0.1:0", SystemClock(), milliseconds(3000));
  const auto worker = Join("w0", "u0");
  EXPECT_TRUE(Connected("u0", false));
  EXPECT_EQ(worker->WaitForEnd().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(ServerTest, NoticesABrokenStreamAtOnce) {
  const auto worker = Join("w0", "u0");
  worker->Cancel();
  EXPECT_TRUE(Connected("u0", false));
}

// What a launcher says at the end of training.
void SayTheEnd(WorkerClient& worker) {
  v1::Event event;
  event.set_round(1);
  event.mutable_finished()->set_weights_sha256("5f1c");
  worker.Send(event);
  worker.Send(MakeExited(0));
}

bool Leaving(const reconcile::WorkersView& view) {
  return !view.workers.empty() && view.workers[0].leaving;
}

TEST_F(ServerTest, EndsWithOkWhenAWorkerThatHasSaidItsLastIsLetGo) {
  const auto worker = Join("w0", "u0");
  SayTheEnd(*worker);
  std::thread pass([this] {
    EXPECT_TRUE(Eventually(Leaving));
    EXPECT_EQ(server_->link().SnapshotFor(kJob).workers[0].finished->weights_sha256, "5f1c");
    server_->link().LetGo(kJob, "u0");
  });
  EXPECT_TRUE(worker->Close().ok());
  pass.join();
  EXPECT_TRUE(Connected("u0", false));
}

TEST_F(ServerTest, EndsWithoutOkForAWorkerWhoseWordsItHasNotStoredWhenItGoes) {
  const auto worker = Join("w0", "u0");
  SayTheEnd(*worker);
  std::thread end([this] {
    EXPECT_TRUE(Eventually(Leaving));
    server_.reset();
  });
  EXPECT_EQ(worker->Close().error_code(), grpc::StatusCode::UNAVAILABLE);
  end.join();
}

TEST_F(ServerTest, NoticesThatAWorkerWhichWaitsToBeLetGoHasDied) {
  const auto worker = Join("w0", "u0");
  SayTheEnd(*worker);
  worker->SayNoMore();
  ASSERT_TRUE(Eventually(Leaving));
  worker->Cancel();
  EXPECT_TRUE(Eventually([](const reconcile::WorkersView& view) { return !Leaving(view); }));
}

TEST_F(ServerTest, HearsTheLastWordsOfATerminatingPod) {
  kube::Json pod = Pod("w0", "u0");
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  pods_.Put(pod);
  WorkerClient client(server_->address());
  v1::Hello hello = MakeHello("w0", "u0", 1);
  hello.set_leaving(true);
  client.Hello(hello);
  const auto answer = client.Next();
  ASSERT_TRUE(answer && answer->has_accepted());
  client.Send(MakeShard(1, 50, "d"));
  EXPECT_TRUE(Eventually([](const reconcile::WorkersView& view) {
    return !view.workers.empty() && !view.workers[0].durable.empty();
  }));
}

TEST_F(ServerTest, AnnouncesRoundsInOrder) {
  const auto a = Join("w0", "u0");
  const auto b = Join("w1", "u1");
  server_->link().Announce(kJob, Round(1));
  server_->link().Announce(kJob, Round(2));
  for (int rank = 0; rank < 2; ++rank) {
    for (std::int64_t number = 1; number <= 2; ++number) {
      const auto message = (rank == 0 ? *a : *b).Next();
      ASSERT_TRUE(message && message->command().has_round());
      EXPECT_EQ(message->command().round().number(), number);
      EXPECT_EQ(message->command().round().rank(), rank);
      EXPECT_EQ(message->command().round().checkpoints(0).step(), 40);
    }
  }
}

TEST_F(ServerTest, TakesAWorkerBackAfterARestart) {
  const auto before = Join("w0", "u0");
  server_->link().Announce(kJob, Round(1));
  const std::string key = before->Next()->command().round().key();
  const std::string address = server_->address();
  server_.reset();
  EXPECT_FALSE(before->WaitForEnd().ok());

  Start(address);
  const auto after = Join("w0", "u0", 1);
  EXPECT_EQ(server_->link().SnapshotFor(kJob).workers[0].round, 1);
  server_->link().Announce(kJob, Round(1));
  EXPECT_EQ(after->Next()->command().round().key(), key);
}

// Says that a token is of the pod w0, when it is let.
class SlowReviewer : public kube::TokenReviewer {
 public:
  absl::StatusOr<kube::PodIdentity> ReviewToken(std::string_view, std::string_view) override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return answers_; }));
    return kube::PodIdentity{{"default", "w0"}, "u0"};
  }
  bool AskedTimes(int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return asked_ == times; });
  }
  void Answer() {
    std::lock_guard lock(mutex_);
    answers_ = true;
    changed_.notify_all();
  }
  int asked() {
    std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;
  bool answers_ = false;
};

v1::Hello WithToken(const std::string& token) {
  v1::Hello hello = MakeHello("w0", "u0");
  hello.set_token(token);
  return hello;
}

class ReviewTest : public ServerTest {
 protected:
  ReviewTest() { Start("127.0.0.1:0", SystemClock(), milliseconds(500), &reviewer_); }
  ~ReviewTest() override {
    reviewer_.Answer();
    server_.reset();
  }

  SlowReviewer reviewer_;
};

TEST_F(ReviewTest, TellsAWorkerWhoseTokenIsCheckedForLongThatItIsThere) {
  WorkerClient worker(server_->address());
  worker.Hello(WithToken("mine"));
  for (int i = 0; i < 20; ++i) {
    const auto message = worker.NextOfAny();
    ASSERT_TRUE(message && message->has_heartbeat()) << i;
  }
  reviewer_.Answer();
  const auto answer = worker.Next();
  EXPECT_TRUE(answer && answer->has_accepted());
}

TEST_F(ReviewTest, AsksNothingForAWorkerThatIsGoneWhenItsTurnComes) {
  std::vector<std::unique_ptr<WorkerClient>> workers;
  constexpr int kAtOnce = 8;
  for (int i = 0; i < kAtOnce + 1; ++i) {
    workers.push_back(std::make_unique<WorkerClient>(server_->address()));
    workers.back()->Hello(WithToken("mine"));
    if (i < kAtOnce) {
      ASSERT_TRUE(reviewer_.AskedTimes(i + 1));
    }
  }
  const auto waiting = workers.back()->NextOfAny();
  ASSERT_TRUE(waiting && waiting->has_heartbeat());
  workers.back()->Cancel();
  WorkerClient last(server_->address());
  last.Hello(WithToken("mine"));
  // Nobody says when the server has seen that the one before is gone; a second is ample.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(last.NextOfAny());
  reviewer_.Answer();
  const auto answer = last.Next();
  EXPECT_TRUE(answer && answer->has_accepted());
  EXPECT_EQ(reviewer_.asked(), kAtOnce + 1);
}

TEST_F(ReviewTest, AsksNothingAboutATokenThatIsLongerThanAny) {
  WorkerClient worker(server_->address());
  worker.Hello(WithToken(std::string(100'000, 'x')));
  const auto answer = worker.Next();
  ASSERT_TRUE(answer && answer->has_refused());
  EXPECT_EQ(answer->refused().reason(), "what the Hello has as a token is longer than any");
  EXPECT_EQ(reviewer_.asked(), 0);
}

// A TCP connection from this address of ours, which says nothing.
UniqueFd SilentConnection(int port, const char* from) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, from, &address.sin_addr), 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST_F(ServerTest, TakesWorkersInHoweverManySilentConnectionsAnAddressOpens) {
  Start("127.0.0.1:0", clock_, std::chrono::minutes(10));  // for which they may say nothing
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(SilentConnection(server_->port(), "127.0.0.2"));
  const auto from_elsewhere = Join("w0", "u0");
  for (int i = 0; i < 100; ++i) silent.push_back(SilentConnection(server_->port(), "127.0.0.1"));
  const auto from_there = Join("w1", "u1");
  EXPECT_TRUE(Connected("u0", true));
}

// A TCP connection that says `bytes` and then waits for the other side to close.
bool ClosedAfter(int port, const std::string& bytes) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  timeval limit{30, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  char byte;
  const ssize_t got = ::recv(fd.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

TEST_F(ServerTest, RefusesGarbageAndDisturbsNobody) {
  const auto worker = Join("w0", "u0");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(ClosedAfter(server_->port(), "GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(ClosedAfter(server_->port(), std::string("\x16\x03\x01\0\xff", 5)));
  EXPECT_TRUE(ClosedAfter(server_->port(), std::string(100000, 'A')));
  const std::string log = ::testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("not a worker", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 1u) << log;
  worker->Send(MakeProgress(1, 7));
  EXPECT_TRUE(Eventually([](const reconcile::WorkersView& view) {
    return view.workers[0].connected && view.workers[0].progress;
  }));
}

TEST_F(ServerTest, RefusesGarbageBehindARightBeginning) {
  const auto worker = Join("w0", "u0");
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 131 + 7);
  // gRPC answers with its settings before it closes; what counts is that nobody else notices.
  ClosedAfter(server_->port(), bytes);
  worker->Send(MakeProgress(1, 7));
  EXPECT_TRUE(Eventually([](const reconcile::WorkersView& view) {
    return view.workers[0].connected && view.workers[0].progress;
  }));
}

}  // namespace
}  // namespace ringmaster::rendezvous

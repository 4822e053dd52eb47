// How the launcher proves who it is, finds the leader, and gets into other images.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <poll.h>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/contract.h"
#include "common/file.h"
#include "common/temporary_folder.h"
#include "tests/integration/launcher_fixture.h"

namespace ringmaster::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Optional;

// Knows one token of w0 and remembers what it was asked.
class OneToken : public kube::TokenReviewer {
 public:
  absl::StatusOr<kube::PodIdentity> ReviewToken(std::string_view token,
                                                std::string_view audience) override {
    std::lock_guard lock(mutex_);
    asked_ = std::string(token);
    changed_.notify_all();
    if (token != "good" || audience != contract::kTokenAudience)
      return absl::UnauthenticatedError("the token is not known");
    return kube::PodIdentity{{"default", "w0"}, "u0"};
  }
  bool WasAsked(const std::string& token) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return asked_ == token; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string asked_;
};

class LauncherIdentityTest : public LauncherFixture {
 protected:
  ~LauncherIdentityTest() override { StopServer(); }  // before the reviewer that it asks

  void StartSecureServer() {
    reviewer_ = &tokens_;
    certificate_ = *SelfSignedCertificate(contract::kRendezvousServerName, SystemClock().Now(),
                                          std::chrono::hours(1));
    StopServer();
    StartServer();
    environment_[contract::kEnvRendezvousCa] = certificate_->certificate_pem;
    environment_[contract::kEnvTokenFile] = TokenFile();
  }
  std::string TokenFile() const { return folder_ / "token"; }
  void WriteToken(const std::string& token) {
    ASSERT_TRUE(WriteFileAtomically(TokenFile(), token).ok());
  }

  std::unique_ptr<rendezvous::Server> StartStandby() {
    rendezvous::Server::Options options{
        .address = "127.0.0.1:0", .secret = "secret", .stand_by = true};
    auto standby =
        rendezvous::Server::Start(options, SystemClock(), knows_no_pod_, [](const auto&) {});
    EXPECT_TRUE(standby.ok()) << standby.status();
    return *std::move(standby);
  }

  rendezvous::ObjectPodVerifier knows_no_pod_{[](const auto&) { return nullptr; }};
  const TemporaryFolder temporary_ = TemporaryFolder::Make().value();
  const std::filesystem::path folder_ = temporary_.path();
  OneToken tokens_;
};

TEST_F(LauncherIdentityTest, ShowsTheTokenThatTheKubeletHasRenewed) {
  StartSecureServer();
  WriteToken("expired");
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(tokens_.WasAsked("expired"));
  EXPECT_FALSE(View().connected);
  WriteToken("good");
  EXPECT_TRUE(EventuallyConnected()) << "without being started anew";
}

TEST_F(LauncherIdentityTest, GoesToTheLeaderThatAStandbyNames) {
  const auto standby = StartStandby();
  standby->StandBy(environment_[contract::kEnvRendezvous]);
  environment_[contract::kEnvRendezvous] = standby->address();
  const auto launcher = LaunchTrainer("");
  EXPECT_TRUE(EventuallyConnected());
}

TEST_F(LauncherIdentityTest, DialsLessAndLessOftenAnOperatorThatTakesItAndDropsItAtOnce) {
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(EventuallyConnected());
  const auto start = std::chrono::steady_clock::now();
  for (int times = 0; times < 5; ++times) {
    server_->link().Forget(kJob);
    ASSERT_TRUE(EventuallyConnected());
  }
  // Half of 0.1, 0.2, 0.4, 0.8 and 1.6 s, the other half is chance.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1550));
}

// An address behind which nothing answers, as of a machine without power: the kernel drops what
// comes, since as many wait already as the listener takes.
class DarkAddress {
 public:
  DarkAddress() : listener_(Socket()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), name, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    EXPECT_EQ(::getsockname(listener_.get(), name, &length), 0);
    port_ = ntohs(address.sin_port);
    text_ = fmt::format("127.0.0.1:{}", port_);
    ::connect(guest_.get(), name, length);
  }

  const std::string& text() const { return text_; }

  // False when nobody has begun to connect by the deadline.
  bool WaitUntilDialed() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (IsDialed("/proc/net/tcp") || IsDialed("/proc/net/tcp6")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the kernel tells nobody
    }
    return false;
  }

 private:
  // Whether a line of this table is of a connection to here that is being made.
  bool IsDialed(const char* table) const {
    const auto lines = ReadFile(table, 64 << 20);
    return lines.ok() &&
           lines->find(fmt::format("0100007F:{:04X} 02 ", port_)) != std::string::npos;
  }

  static UniqueFd Socket() {
    return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  }

  const UniqueFd listener_;
  const UniqueFd guest_ = Socket();
  int port_ = 0;
  std::string text_;
};

// Whether the work is done in less time than so many dials into the dark take, one after another.
template <typename Work>
bool FasterThanDials(int dials, Work work) {
  constexpr auto kDial = std::chrono::seconds(4);  // of 5, as nobody sees when the first began
  const auto begun = std::chrono::steady_clock::now();
  return work() && std::chrono::steady_clock::now() - begun < dials * kDial;
}

TEST_F(LauncherIdentityTest, WaitsForNoDialIntoTheDarkBeforeItTriesTheNextAddress) {
  const DarkAddress dark;
  environment_[contract::kEnvRendezvous] = dark.text() + "," + dark.text() + "," + dark.text() +
                                           "," + environment_[contract::kEnvRendezvous];
  const auto launcher = LaunchTrainer("");
  EXPECT_TRUE(FasterThanDials(3, [this] { return EventuallyConnected(); }));
}

TEST_F(LauncherIdentityTest, AsksAgainWhileTheLeaderThatAStandbyNamesIsDark) {
  const DarkAddress dark;
  const auto standby = StartStandby();
  standby->StandBy(dark.text());
  const std::string leader = environment_[contract::kEnvRendezvous];
  environment_[contract::kEnvRendezvous] = standby->address();
  const auto launcher = LaunchTrainer("");
  ASSERT_TRUE(dark.WaitUntilDialed());
  EXPECT_TRUE(FasterThanDials(1, [&] {
    standby->StandBy(leader);
    return EventuallyConnected();
  }));
}

// Passes connections on to a port of ours, each after longer than a launcher waits before it tries
// another address too: as an operator to which all workers come at once.
class SlowDoor {
 public:
  explicit SlowDoor(int port) : target_(port), listener_(Socket()) {
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), name, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), name, &length), 0);
    text_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~SlowDoor() {
    closing_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr auto kSlowness = std::chrono::milliseconds(3500);

  static UniqueFd Socket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void Run() {
    std::vector<std::thread> guests;
    while (true) {
      UniqueFd guest(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!guest.valid()) break;
      guests.emplace_back([this, guest = std::move(guest)] { Serve(guest.get()); });
    }
    for (std::thread& thread : guests) thread.join();
  }

  void Serve(int guest) const {
    std::this_thread::sleep_for(kSlowness);  // the slowness itself
    const UniqueFd host = Socket();
    const sockaddr_in address = Loopback(target_);
    ::connect(host.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int sides[] = {guest, host.get()};
    while (!closing_) {
      pollfd fds[] = {{sides[0], POLLIN, 0}, {sides[1], POLLIN, 0}};
      ::poll(fds, 2, /*milliseconds=*/50);
      for (int side = 0; side < 2; ++side) {
        char bytes[4096];
        if (fds[side].revents == 0) continue;
        const ssize_t got = ::recv(sides[side], bytes, sizeof bytes, 0);
        if (got <= 0 || ::send(sides[1 - side], bytes, got, MSG_NOSIGNAL) != got) return;
      }
    }
  }

  const int target_;
  const UniqueFd listener_;
  std::string text_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

TEST_F(LauncherIdentityTest, WaitsForALeaderThatIsSlowWhileAStandbyAnswersAtOnce) {
  const SlowDoor leader(server_->port());
  const auto standby = StartStandby();
  standby->StandBy(leader.text());
  environment_[contract::kEnvRendezvous] = standby->address();
  const auto launcher = LaunchTrainer("");
  EXPECT_TRUE(EventuallyConnected());
}

TEST_F(LauncherIdentityTest, InstallsItselfWithEverythingThatItRunsFrom) {
  const std::string folder = folder_ / "launcher";
  Process installer({LauncherPath(), "--install", folder}, {});
  ASSERT_THAT(installer.Wait(), Optional(0));
  Process help(
      {folder + "/ld.so", "--library-path", folder, folder + "/ringmaster-launcher", "--help"}, {});
  EXPECT_THAT(help.Line(), Optional(HasSubstr("usage: ringmaster-launcher")));
  EXPECT_THAT(help.Wait(), Optional(0));
  // Nothing is taken from the machine's own folders.
  Process list(
      {folder + "/ld.so", "--library-path", folder, "--list", folder + "/ringmaster-launcher"}, {});
  std::vector<std::string> libraries;
  while (const auto line = list.Line()) {
    if (line->find("=>") != std::string::npos) libraries.push_back(*line);
  }
  EXPECT_THAT(libraries, Contains(HasSubstr("libgrpc")));
  EXPECT_THAT(libraries, Each(HasSubstr("=> " + folder + "/")));
}

}  // namespace
}  // namespace ringmaster::testing

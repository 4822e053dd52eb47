// The real launcher under the real rendezvous, with a program that the test chooses. One pod, w0 of
// job default/digits, is the worker.
#ifndef RINGMASTER_TESTS_INTEGRATION_LAUNCHER_FIXTURE_H_
#define RINGMASTER_TESTS_INTEGRATION_LAUNCHER_FIXTURE_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/temporary_folder.h"
#include "operator/rendezvous/server.h"
#include "tests/support/process.h"

namespace ringmaster::testing {

class LauncherFixture : public ::testing::Test {
 protected:
  LauncherFixture();
  ~LauncherFixture() override { StopServer(); }

  // Starts the operator's side; again, at the address that it had, after StopServer(). Whoever
  // waits to leave is let go, as by passes that store what was said, unless `stores_` is false.
  void StartServer();
  // The operator is gone.
  void StopServer();

  static std::string LauncherPath();

  // The launcher of w0. Without a command it runs the scripted trainer with this script.
  std::unique_ptr<Process> Launch(const std::vector<std::string>& command,
                                  std::map<std::string, std::string> environment = {},
                                  const std::vector<int>& inherit = {});
  std::unique_ptr<Process> LaunchTrainer(const std::string& script,
                                         const std::vector<int>& inherit = {});

  // Announces a round whose only member is w0.
  void Announce(std::int64_t round);
  void Send(const reconcile::WorkerCommand& command);

  // Waits until what is known of w0 satisfies the condition.
  bool Eventually(const std::function<bool(const reconcile::WorkerView&)>& condition);
  bool EventuallyConnected();
  bool EventuallyReady();
  reconcile::WorkerView View();

  static inline const kube::ObjectKey kJob{"default", "digits"};

  std::map<std::string, std::string> environment_;
  std::vector<std::string> before_launcher_;  // a command that starts the launcher instead of us
  rendezvous::Timing timing_{.heartbeat = std::chrono::milliseconds(100),
                             .timeout = std::chrono::seconds(10)};
  kube::TokenReviewer* reviewer_ = nullptr;  // for the next StartServer
  std::optional<Certificate> certificate_;   // likewise
  std::string pod_uid_ = "u0";               // of the pod that the operator knows as w0
  // What the operator says of w0; for the next StartServer. Called from its threads.
  std::function<absl::Status(bool leaving)> verdict_ = [](bool) { return absl::OkStatus(); };
  std::unique_ptr<rendezvous::Server> server_;
  std::atomic<bool> stores_{true};

 private:
  class Verifier : public rendezvous::PodVerifier {
   public:
    explicit Verifier(const LauncherFixture& fixture) : fixture_(fixture) {}
    absl::Status Verify(const rendezvous::WorkerIdentity& worker, bool leaving) override;

   private:
    const LauncherFixture& fixture_;
  };

  void LetGo();

  // Of launchers, which may be killed before they remove what is theirs.
  const TemporaryFolder temporary_ = TemporaryFolder::Make().value();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<rendezvous::Server*> storing_{nullptr};  // server_, for its own threads
  Verifier verifier_{*this};
  std::string address_ = "127.0.0.1:0";
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_INTEGRATION_LAUNCHER_FIXTURE_H_

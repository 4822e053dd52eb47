#include "tests/integration/launcher_fixture.h"

#include <cstdlib>

#include "common/clock.h"
#include "common/contract.h"

namespace ringmaster::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

std::string BuildFolder() {
  const char* bin = std::getenv("RINGMASTER_BIN_DIR");
  return std::string(bin == nullptr ? "build/dev/bin" : bin) + "/..";
}

}  // namespace

absl::Status LauncherFixture::Verifier::Verify(const rendezvous::WorkerIdentity& worker,
                                               bool leaving) {
  if (worker.pod_uid == fixture_.pod_uid_) return fixture_.verdict_(leaving);
  return absl::PermissionDeniedError("the pod has another UID now");
}

LauncherFixture::LauncherFixture() {
  StartServer();
  environment_ = {{contract::kEnvNamespace, kJob.ns},   {contract::kEnvJob, kJob.name},
                  {contract::kEnvPodName, "w0"},        {contract::kEnvPodUid, "u0"},
                  {contract::kEnvPodIp, "127.0.0.2"},   {contract::kEnvGraceSeconds, "60"},
                  {contract::kEnvRendezvous, address_}, {"TMPDIR", temporary_.path()}};
}

void LauncherFixture::StartServer() {
  auto server = rendezvous::Server::Start({.address = address_,
                                           .secret = "secret",
                                           .timing = timing_,
                                           .reviewer = reviewer_,
                                           .certificate = certificate_},
                                          SystemClock(), verifier_, [this](const kube::ObjectKey&) {
                                            LetGo();
                                            std::lock_guard lock(mutex_);
                                            changed_.notify_all();
                                          });
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    return;
  }
  std::lock_guard lock(mutex_);
  server_ = *std::move(server);
  address_ = server_->address();
  storing_ = server_.get();
}

void LauncherFixture::StopServer() {
  storing_ = nullptr;
  server_.reset();
}

void LauncherFixture::LetGo() {
  rendezvous::Server* server = storing_;
  if (server == nullptr || !stores_) return;
  for (const reconcile::WorkerView& worker : server->link().SnapshotFor(kJob).workers) {
    if (worker.leaving) server->link().LetGo(kJob, worker.pod_uid);
  }
}

std::string LauncherFixture::LauncherPath() {
  return BuildFolder() + "/bin/ringmaster-launcher";
}

std::unique_ptr<Process> LauncherFixture::Launch(const std::vector<std::string>& command,
                                                 std::map<std::string, std::string> environment,
                                                 const std::vector<int>& inherit) {
  environment.insert(environment_.begin(), environment_.end());
  std::vector<std::string> words = before_launcher_;
  words.push_back(LauncherPath());
  if (!command.empty()) words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return std::make_unique<Process>(words, environment, inherit);
}

std::unique_ptr<Process> LauncherFixture::LaunchTrainer(const std::string& script,
                                                        const std::vector<int>& inherit) {
  return Launch({},
                {{contract::kEnvTrainerBinary, BuildFolder() + "/tests/scripted_trainer"},
                 {contract::kEnvTrainerConfig, script}},
                inherit);
}

void LauncherFixture::Announce(std::int64_t round) {
  server_->link().Announce(
      kJob, {.round = round, .members = {{0, "w0", "u0", "127.0.0.2:7473"}}, .shards = 4});
}

void LauncherFixture::Send(const reconcile::WorkerCommand& command) {
  server_->link().Send(kJob, "u0", command);
}

reconcile::WorkerView LauncherFixture::View() {
  const reconcile::WorkersView view = server_->link().SnapshotFor(kJob);
  return view.workers.empty() ? reconcile::WorkerView{} : view.workers[0];
}

bool LauncherFixture::Eventually(
    const std::function<bool(const reconcile::WorkerView&)>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return condition(View()); });
}

bool LauncherFixture::EventuallyConnected() {
  return Eventually([](const reconcile::WorkerView& view) { return view.connected; });
}

bool LauncherFixture::EventuallyReady() {
  return Eventually(
      [](const reconcile::WorkerView& view) { return view.connected && view.ready.has_value(); });
}

}  // namespace ringmaster::testing

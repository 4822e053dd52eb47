#include "operator/local/local_cluster.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/env.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/api/admission.h"
#include "operator/local/program_directory.h"
#include "operator/rendezvous/round_key.h"

namespace ringmaster::local {
namespace {

// What every worker process starts from: enough to find programs and libraries, and what a user set
// for Ringmaster itself.
std::map<std::string, std::string> WorkerEnvironment() {
  std::map<std::string, std::string> environment;
  for (const char* name : {"PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH"})
    environment[name] = env::GetString(name);
  for (const env::Variable& variable : env::All()) {
    if (std::strncmp(variable.name, "RINGMASTER_", 11) == 0 &&
        variable.audience != env::Audience::kInternal && env::IsSet(variable.name)) {
      environment[variable.name] = env::GetString(variable.name);
    }
  }
  std::erase_if(environment, [](const auto& entry) { return entry.second.empty(); });
  return environment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Open(Options options,
                                                                 const Clock& clock) {
  // Worker processes start in another directory.
  options.state_directory = std::filesystem::absolute(options.state_directory);
  options.workspace = std::filesystem::absolute(options.workspace);
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(options), clock));
  kube::memory::StoreOptions store;
  store.clock = &clock;
  store.journal_path = (cluster->options_.state_directory / "store.journal").string();
  RM_ASSIGN_OR_RETURN(cluster->store_, kube::memory::MemoryStore::Open(store));
  if (!cluster->store_->torn().empty()) {
    log::Warning("the end of the journal was torn and is dropped",
                 {{"journal", store.journal_path}, {"dropped", cluster->store_->torn()}});
  }
  cluster->store_->SetAdmission(kube::kTrainingJob, [](kube::memory::AdmissionRequest& request) {
    return api::AdmitTrainingJob(request.object, request.current);
  });
  return cluster;
}

LocalCluster::~LocalCluster() {
  enqueue_to_ = nullptr;
  if (manager_ != nullptr) manager_->Stop();
  agent_.reset();
  rendezvous_.reset();
}

absl::Status LocalCluster::Start() {
  node::NodeAgent::Options node;
  RM_ASSIGN_OR_RETURN(node.bin_directory,
                      ProgramDirectory({"ringmaster-launcher", "ringmaster-train"}));
  node.workspace = options_.workspace.string();
  node.run_directory = options_.state_directory.string();
  node.environment = WorkerEnvironment();
  RM_ASSIGN_OR_RETURN(agent_, node::NodeAgent::Create(std::move(node), *store_, clock_));
  RM_RETURN_IF_ERROR(StartRendezvous());
  manager::ManagerOptions options;
  options.settings = MakeSettings();
  options.observer = &metrics_;
  options.on_job = [this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
    metrics_.OnJob(before, after);
  };
  manager_ =
      std::make_unique<manager::Manager>(std::move(options), *store_, rendezvous_->link(), clock_);
  enqueue_to_ = manager_.get();
  RM_RETURN_IF_ERROR(StartMetrics());
  // The node first: it says which pods of an earlier process are lost before the operator looks at
  // them.
  RM_RETURN_IF_ERROR(agent_->Start());
  return manager_->Start();
}

absl::Status LocalCluster::StartRendezvous() {
  rendezvous::Server::Options options;
  options.address = agent_->host_ip() + ":0";
  RM_ASSIGN_OR_RETURN(options.secret, rendezvous::LoadOrCreateSecret(
                                          (options_.state_directory / "rendezvous.key").string()));
  verifier_ = std::make_unique<rendezvous::ObjectPodVerifier>(
      [this](const kube::ObjectKey& key) -> kube::ObjectPtr {
        auto pod = store_->Get(kube::kPod, key);
        return pod.ok() ? std::make_shared<const kube::Json>(*std::move(pod)) : nullptr;
      });
  const auto changed = [this](const kube::ObjectKey& job) {
    if (manager::Manager* manager = enqueue_to_) manager->Enqueue(job);
  };
  RM_ASSIGN_OR_RETURN(rendezvous_,
                      rendezvous::Server::Start(std::move(options), clock_, *verifier_, changed));
  return absl::OkStatus();
}

absl::Status LocalCluster::StartMetrics() {
  if (options_.metrics_address.empty()) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(metrics_server_, metrics::Server::Start(registry_, options_.metrics_address));
  return absl::OkStatus();
}

reconcile::Settings LocalCluster::MakeSettings() const {
  reconcile::Settings settings;
  settings.rendezvous = rendezvous_->address();
  settings.workspace = options_.workspace.string();
  settings.checkpoint_directory = checkpoint_directory().string();
  return settings;
}

reconcile::WorkersView LocalCluster::WorkersOf(const kube::ObjectKey& job) {
  return rendezvous_ == nullptr ? reconcile::WorkersView{} : rendezvous_->link().SnapshotFor(job);
}

}  // namespace ringmaster::local

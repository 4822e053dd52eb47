#include "tests/support/operator_world.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "operator/api/admission.h"
#include "operator/kube/names.h"

namespace ringmaster::testing {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr Duration kMoment = rendezvous::Timing{}.heartbeat;

void CheckAgainstSchema(kube::memory::MemoryStore& store) {
  store.SetAdmission(kube::kTrainingJob, [](kube::memory::AdmissionRequest& request) {
    return api::AdmitTrainingJob(request.object, request.current);
  });
}

std::unique_ptr<kube::memory::MemoryStore> OpenStore(const Clock& clock) {
  kube::memory::StoreOptions options{.clock = &clock, .seed = kSeed};
  // Served always, and used when ServeGangs says so.
  for (const reconcile::GangApi& api : reconcile::kGangApis) {
    options.kinds.push_back({.type = api.type, .problem_with_name = kube::ProblemWithDnsSubdomain});
  }
  auto store = kube::memory::MemoryStore::Open(std::move(options));
  RM_CHECK(store.ok(), "a store without a journal always opens");
  CheckAgainstSchema(**store);
  return *std::move(store);
}

}  // namespace

OperatorWorld::OperatorWorld()
    : store_(OpenStore(clock_)),
      client_(*store_, log_, /*died=*/[this] { workers_.Reset(); }),
      workers_(clock_, *store_, log_, [this](const kube::ObjectKey& job) {
        if (manager_ != nullptr) manager_->Enqueue(job);
      }) {
  StartOperator();
}

void OperatorWorld::StartOperator() {
  manager::ManagerOptions options;
  options.settings.rendezvous = "127.0.0.1:7471";
  if (gang_ != nullptr) options.gang_apis = {gang_};
  options.status_interval = status_interval_;
  options.small_caches = true;
  options.parallel_writes = 1;  // so that the order of calls is one
  manager_ = std::make_unique<manager::Manager>(options, client_, workers_, clock_);
}

void OperatorWorld::ServeGangs(const reconcile::GangApi* api) {
  gang_ = api;
  RestartOperator();
}

void OperatorWorld::SetStatusInterval(Duration interval) {
  status_interval_ = interval;
  RestartOperator();
}

absl::Status OperatorWorld::CreateUnchecked(const kube::Json& job) {
  store_->SetAdmission(kube::kTrainingJob, nullptr);
  const absl::Status created = store_->Create(kube::kTrainingJob, job).status();
  CheckAgainstSchema(*store_);
  return created;
}

void OperatorWorld::Advance(Duration time) {
  workers_.BuryTheDead();
  for (Duration left = time; left > Duration::zero(); left -= kMoment) {
    clock_.Advance(std::min(left, kMoment));
    workers_.Beat();
  }
}

absl::Status OperatorWorld::Run() {
  if (client_.dead()) return absl::OkStatus();
  const absl::Status ran = manager_->RunUntilIdle().status();
  return client_.dead() ? absl::OkStatus() : ran;
}

void OperatorWorld::RestartOperator() {
  manager_.reset();
  client_.Revive();
  workers_.Reset();
  StartOperator();
}

}  // namespace ringmaster::testing

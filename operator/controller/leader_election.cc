#include "operator/controller/leader_election.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/log.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"

namespace ringmaster::controller {
namespace {

using kube::Json;

// The random part of an interval, as a multiple of it.
constexpr double kJitter = 1.2;

std::int64_t Seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

Json RecordOf(const Json& lease) {
  const Json* spec = kube::Find(lease, {"spec"});
  return spec == nullptr ? Json::object() : *spec;
}

// Whether the server itself has answered, be it with a refusal.
bool IsAnswer(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status LeaderElectionOptions::Validate() const {
  if (identity.empty()) return absl::InvalidArgumentError("leader election: no identity");
  if (lease.ns.empty() || lease.name.empty())
    return absl::InvalidArgumentError("leader election: the lease needs a namespace and a name");
  if (lease_duration < std::chrono::seconds(1) ||
      lease_duration % std::chrono::seconds(1) != Duration(0))
    return absl::InvalidArgumentError(
        "leader election: the lease's duration must be whole seconds");
  if (lease_duration <= renew_deadline)
    return absl::InvalidArgumentError(fmt::format(
        "leader election: the lease's duration ({}) must be more than the renew deadline ({})",
        FormatDuration(lease_duration), FormatDuration(renew_deadline)));
  if (retry_period <= Duration(0) || renew_deadline <= retry_period * kJitter)
    return absl::InvalidArgumentError(fmt::format(
        "leader election: the renew deadline ({}) must be more than {} times the retry period ({})",
        FormatDuration(renew_deadline), kJitter, FormatDuration(retry_period)));
  return absl::OkStatus();
}

LeaderElector::LeaderElector(LeaderElectionOptions options, kube::Client& client,
                             const Clock& clock)
    : options_(std::move(options)),
      client_(client),
      clock_(clock),
      random_(static_cast<std::minstd_rand::result_type>(options_.seed)) {}

Duration LeaderElector::Step() {
  const Standing before = standing();
  if (before == Standing::kLost) {
    SetLost("not renewed in time");
    return options_.retry_period;
  }
  const absl::Status status = TakeOrRenew();
  {
    const std::lock_guard lock(mutex_);
    if (IsAnswer(status)) last_answer_ = clock_.SteadyNow();
  }
  if (!status.ok() && !kube::IsConflict(status)) {
    log::Warning("cannot take or renew the lease",
                 {{"lease", options_.lease.ToString()}, {"error", status}});
  }
  const Standing after = standing();
  if (before == Standing::kLeading && after == Standing::kLost) SetLost("not renewed in time");
  // A leader asks at a steady pace, so that a failed renewal leaves time for more.
  return after == Standing::kLeading ? options_.retry_period : Jittered(options_.retry_period);
}

Duration LeaderElector::Jittered(Duration period) {
  std::uniform_real_distribution<double> part(0, kJitter);
  return period + std::chrono::duration_cast<Duration>(period * part(random_));
}

absl::Status LeaderElector::TakeOrRenew() {
  const SteadyTime asked = clock_.SteadyNow();
  if (Leads() && observed_) {
    // Without reading first: the resourceVersion says whether it is still ours.
    if (Write(*observed_->lease, asked).ok()) return absl::OkStatus();
  }
  absl::StatusOr<Json> lease = client_.Get(kube::kLease, options_.lease);
  if (kube::IsNotFound(lease.status())) return CreateLease(clock_.SteadyNow());
  if (!lease.ok()) return lease.status();
  Observe(*std::move(lease), clock_.SteadyNow());
  if (Leads() && !HeldByMe()) {
    SetLost("taken by another");
    return absl::OkStatus();
  }
  if (HeldByAnother(clock_.SteadyNow())) return absl::OkStatus();
  return Write(*observed_->lease, clock_.SteadyNow());
}

absl::Status LeaderElector::CreateLease(SteadyTime asked) {
  if (Leads()) {
    SetLost("the lease was deleted");
    return absl::OkStatus();
  }
  Json lease = kube::NewObject(kube::kLease, options_.lease);
  kube::SetAnnotation(lease, kAnnotationLeaderAddress, options_.address);
  observed_.reset();
  lease["spec"] = NewRecord();
  absl::StatusOr<Json> stored = client_.Create(kube::kLease, lease);
  if (!stored.ok()) return stored.status();
  Observe(*std::move(stored), asked);
  SetLeading(asked);
  return absl::OkStatus();
}

absl::Status LeaderElector::Write(const Json& lease, SteadyTime asked) {
  Json changed = lease;
  // What others keep in the spec stays.
  kube::MergePatch(changed["spec"], NewRecord());
  kube::SetAnnotation(changed, kAnnotationLeaderAddress, options_.address);
  absl::StatusOr<Json> stored = client_.Update(kube::kLease, changed);
  if (!stored.ok()) return stored.status();
  Observe(*std::move(stored), asked);
  SetLeading(asked);
  return absl::OkStatus();
}

Json LeaderElector::NewRecord() const {
  const std::string now = kube::MicroTime(clock_.Now());
  Json record = {{"holderIdentity", options_.identity},
                 {"leaseDurationSeconds", Seconds(options_.lease_duration)},
                 {"renewTime", now},
                 {"acquireTime", now},
                 {"leaderTransitions", 0}};
  if (!observed_) return record;
  const std::int64_t transitions =
      kube::FindInt(*observed_->lease, {"spec", "leaderTransitions"}).value_or(0);
  record["leaderTransitions"] = HeldByMe() ? transitions : transitions + 1;
  const Json* acquired = kube::Find(*observed_->lease, {"spec", "acquireTime"});
  if (HeldByMe() && acquired != nullptr) record["acquireTime"] = *acquired;
  return record;
}

void LeaderElector::Observe(Json lease, SteadyTime now) {
  const bool same = observed_ && RecordOf(*observed_->lease) == RecordOf(lease);
  Leader leader;
  leader.identity = kube::FindString(lease, {"spec", "holderIdentity"});
  if (!leader.identity.empty())
    leader.address = kube::Annotation(lease, kAnnotationLeaderAddress).value_or("");
  observed_ = Observed{.lease = std::make_shared<const Json>(std::move(lease)),
                       .at = same ? observed_->at : now};
  const std::lock_guard lock(mutex_);
  if (leader != leader_ && !leader.identity.empty()) {
    log::Info("the lease is held", {{"lease", options_.lease.ToString()},
                                    {"holder", leader.identity},
                                    {"address", leader.address}});
  }
  leader_ = leader;
}

bool LeaderElector::HeldByMe() const {
  return kube::FindString(*observed_->lease, {"spec", "holderIdentity"}) == options_.identity;
}

bool LeaderElector::HeldByAnother(SteadyTime now) const {
  if (HeldByMe() || kube::FindString(*observed_->lease, {"spec", "holderIdentity"}).empty())
    return false;
  const std::int64_t seconds =
      kube::FindInt(*observed_->lease, {"spec", "leaseDurationSeconds"}).value_or(0);
  return now < observed_->at + std::chrono::seconds(seconds);
}

void LeaderElector::SetLeading(SteadyTime asked) {
  const std::lock_guard lock(mutex_);
  if (standing_ == Standing::kFollowing)
    log::Info("leading", {{"lease", options_.lease.ToString()}, {"identity", options_.identity}});
  // A renewal that was answered after the deadline comes too late: what depended on it has stopped.
  if (standing_ == Standing::kLost) return;
  if (standing_ == Standing::kLeading && clock_.SteadyNow() >= renewed_ + options_.renew_deadline) {
    return;
  }
  standing_ = Standing::kLeading;
  renewed_ = asked;
}

void LeaderElector::SetLost(const char* why) {
  const std::lock_guard lock(mutex_);
  if (standing_ == Standing::kLost) return;
  standing_ = Standing::kLost;
  log::Error("leadership lost", {{"lease", options_.lease.ToString()}, {"why", why}});
}

LeaderElector::Standing LeaderElector::standing() const {
  const std::lock_guard lock(mutex_);
  const bool overdue = clock_.SteadyNow() >= renewed_ + options_.renew_deadline;
  return standing_ == Standing::kLeading && overdue ? Standing::kLost : standing_;
}

LeaderElector::Leader LeaderElector::leader() const {
  const std::lock_guard lock(mutex_);
  return leader_;
}

std::optional<SteadyTime> LeaderElector::last_answer() const {
  const std::lock_guard lock(mutex_);
  return last_answer_;
}

absl::Status LeaderElector::Release() {
  if (!Leads() || !observed_) return absl::OkStatus();
  {
    const std::lock_guard lock(mutex_);
    standing_ = Standing::kLost;
  }
  Json freed = *observed_->lease;
  // A second, because the API wants at least that; an empty holder is what frees it.
  kube::MergePatch(freed["spec"], {{"holderIdentity", ""},
                                   {"leaseDurationSeconds", 1},
                                   {"renewTime", kube::MicroTime(clock_.Now())}});
  RM_RETURN_IF_ERROR(client_.Update(kube::kLease, freed).status());
  log::Info("the lease is free", {{"lease", options_.lease.ToString()}});
  return absl::OkStatus();
}

}  // namespace ringmaster::controller

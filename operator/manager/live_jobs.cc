#include "operator/manager/live_jobs.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "operator/api/salvage.h"
#include "operator/kube/object.h"
#include "operator/reconcile/conditions.h"

namespace ringmaster::manager {

std::shared_ptr<const api::StoredJob> LiveJobs::Read(const kube::ObjectPtr& object) const {
  kube::ObjectPtr earlier;
  std::shared_ptr<const api::StoredJob> read;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = jobs_.find(kube::KeyOf(*object)); known != jobs_.end()) {
      earlier = known->second.object;
      read = known->second.job;
    }
  }
  if (read == nullptr) return std::make_shared<const api::StoredJob>(api::ReadStored(*object));
  // The cache shows what this process has written in an object of its own.
  if (earlier == object || *earlier == *object) return read;
  return std::make_shared<const api::StoredJob>(api::ReadStored(*object, *earlier, *read));
}

void LiveJobs::Keep(const kube::ObjectPtr& object, std::shared_ptr<const api::StoredJob> job,
                    const reconcile::Observed& seen, bool is_made) {
  const kube::ObjectKey key = kube::KeyOf(*object);
  const bool over = seen.job.status && reconcile::IsFinished(*seen.job.status);
  if (over || (seen.pods.empty() && !is_made)) return Forget(key);
  Job kept{.object = object, .job = std::move(job), .pods = seen.pods, .services = seen.services};
  const std::lock_guard lock(mutex_);
  std::swap(jobs_[key], kept);
}

void LiveJobs::Forget(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(key);
}

void LiveJobs::Saw(const kube::ObjectPtr& pod) {
  const kube::Json* owner = kube::ControllerOf(*pod);
  if (owner == nullptr) return;
  const std::string name = kube::Name(*pod);
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find({kube::Namespace(*pod), kube::FindString(*owner, {"name"})});
  if (job == jobs_.end()) return;
  std::vector<kube::ObjectPtr>& pods = job->second.pods;
  const auto before =
      std::ranges::find_if(pods, [&](const auto& other) { return kube::Name(*other) == name; });
  if (before == pods.end()) {
    pods.push_back(pod);
  } else {
    *before = pod;
  }
}

}  // namespace ringmaster::manager

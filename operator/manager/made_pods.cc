#include "operator/manager/made_pods.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace ringmaster::manager {
namespace {

constexpr std::chrono::seconds kLook{10};
// However far a loaded API server's watch falls behind. A pod that goes, and with it the watch,
// while its creation is being answered is missed for so long.
constexpr std::chrono::minutes kLongestLag{1};

std::string OwnerOf(const kube::Json& pod) {
  const kube::Json* owner = kube::ControllerOf(pod);
  return owner == nullptr ? "" : kube::FindString(*owner, {"uid"});
}

}  // namespace

void MadePods::Record(const kube::ObjectPtr& pod) {
  const std::string owner = OwnerOf(*pod);
  const kube::ObjectKey key = kube::KeyOf(*pod);
  controller::KeptObject kept(pod, trim_);
  {
    const std::lock_guard lock(mutex_);
    made_[owner][key] = {std::move(kept), clock_.SteadyNow()};
  }
  // The cache may have been quicker than the answer: then Seen has come already.
  if (cache_.Get(key) != nullptr) Drop(owner, key);
}

void MadePods::Seen(const kube::Json& pod) {
  Drop(OwnerOf(pod), kube::KeyOf(pod));
}

void MadePods::Drop(const std::string& owner_uid, const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const auto pods = made_.find(owner_uid);
  if (pods == made_.end()) return;
  pods->second.erase(key);
  if (pods->second.empty()) made_.erase(pods);
}

std::vector<kube::ObjectPtr> MadePods::Of(const std::string& owner_uid) {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(owner_uid);
  if (found == made_.end()) return {};
  DropGone(found->second);
  std::vector<kube::ObjectPtr> pods;
  for (const auto& [key, made] : found->second) pods.push_back(made.pod.Read());
  if (pods.empty()) made_.erase(found);
  return pods;
}

// A list that was asked for when the pod was there already, and does not have it.
void MadePods::DropGone(std::map<kube::ObjectKey, Made>& pods) const {
  const SteadyTime listed = cache_.LastListBegan();
  const SteadyTime now = clock_.SteadyNow();
  std::erase_if(pods, [&](const auto& entry) {
    return entry.second.at < listed || now - entry.second.at > kLongestLag;
  });
}

std::optional<Duration> MadePods::LookAgainIn(const std::string& owner_uid) {
  const std::lock_guard lock(mutex_);
  if (!made_.contains(owner_uid)) return std::nullopt;
  return kLook;
}

std::vector<kube::ObjectPtr> MadePods::With(std::string_view index, const std::string& owner_uid) {
  // In this order, so that a pod that reaches the cache meanwhile is in one of them.
  const std::vector<kube::ObjectPtr> made = Of(owner_uid);
  std::vector<kube::ObjectPtr> pods = cache_.ByIndex(index, owner_uid);
  const std::size_t shown = pods.size();
  for (const kube::ObjectPtr& pod : made) {
    const bool known =
        std::any_of(pods.begin(), pods.begin() + static_cast<std::ptrdiff_t>(shown),
                    [&](const auto& other) { return kube::Name(*other) == kube::Name(*pod); });
    if (!known) pods.push_back(pod);
  }
  return pods;
}

}  // namespace ringmaster::manager

// Pods that this process has made and its cache does not show yet.
//
// A watch runs behind, so a pass right after the creation of pods would find them missing, and ask
// for them again; the API server would answer that they exist, which costs two calls each. This
// adds them to what the cache shows, until a list that was asked for later does not have them. It
// is no more than a memory of what the API server has said: a process that has forgotten it, or is
// told too late, only makes those calls.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_MADE_PODS_H_
#define RINGMASTER_OPERATOR_MANAGER_MADE_PODS_H_

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "operator/controller/informer.h"
#include "operator/kube/types.h"

namespace ringmaster::manager {

class MadePods {
 public:
  // The first two must outlive this; `cache` is the pods', measures with `clock` too, and calls
  // Seen for each change. With a trim as little is kept of a pod as in the cache.
  MadePods(const controller::Informer& cache, const Clock& clock, controller::Trim trim = {})
      : cache_(cache), clock_(clock), trim_(std::move(trim)) {}

  // The API server has this pod.
  void Record(const kube::ObjectPtr& pod);
  // The cache shows the pod, or has shown it.
  void Seen(const kube::Json& pod);

  // When to look again at those that the cache is still to show: none of its events may ever come.
  // Nothing where there are none.
  std::optional<Duration> LookAgainIn(const std::string& owner_uid);

  // The pods that the cache's index has for this owner, and those that it is still to show.
  std::vector<kube::ObjectPtr> With(std::string_view index, const std::string& owner_uid);

 private:
  struct Made {
    controller::KeptObject pod;
    SteadyTime at;
  };

  std::vector<kube::ObjectPtr> Of(const std::string& owner_uid);
  void DropGone(std::map<kube::ObjectKey, Made>& pods) const;
  void Drop(const std::string& owner_uid, const kube::ObjectKey& key);

  const controller::Informer& cache_;
  const Clock& clock_;
  const controller::Trim trim_;
  std::mutex mutex_;
  std::map<std::string, std::map<kube::ObjectKey, Made>> made_;  // by owner; guarded by mutex_
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_MADE_PODS_H_

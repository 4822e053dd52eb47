// What the last pass for a job has read, kept for the next while the job has pods and is not over.
//
// A job whose workers start, train and report has pass after pass, and most find the object that
// the one before found, and the same pods but some. To unpack all of them, and to check and decode
// the job, would be nearly all that such a pass costs. Kept, a job of eight workers takes some
// 80 kB, less than the stream of one of its workers; of a cluster's many jobs that wait or are over
// nothing is kept.
//
// Nothing of it can be out of date: a job that was decoded is given only for an object that says
// the same, and pods are held, not looked at, so that whoever reads one that has not changed
// meanwhile finds it unpacked (kept_object.h).
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_LIVE_JOBS_H_
#define RINGMASTER_OPERATOR_MANAGER_LIVE_JOBS_H_

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "operator/kube/types.h"
#include "operator/reconcile/observed.h"

namespace ringmaster::api {
struct StoredJob;
}

namespace ringmaster::manager {

class LiveJobs {
 public:
  // The job that the object holds, as api::ReadStored reads it; never null.
  std::shared_ptr<const api::StoredJob> Read(const kube::ObjectPtr& object) const;

  // After a pass: `job`, which is what `object` holds, and what else the pass has `seen`, are kept
  // in place of what was. Nothing is kept of a job that is over, or that has no pods and of which
  // none `is_made`.
  void Keep(const kube::ObjectPtr& object, std::shared_ptr<const api::StoredJob> job,
            const reconcile::Observed& seen, bool is_made);
  void Forget(const kube::ObjectKey& key);

  // A cache shows this pod now. It is held where its job is kept.
  void Saw(const kube::ObjectPtr& pod);

 private:
  struct Job {
    kube::ObjectPtr object;
    std::shared_ptr<const api::StoredJob> job;
    std::vector<kube::ObjectPtr> pods;
    std::vector<kube::ObjectPtr> services;
  };

  mutable std::mutex mutex_;
  std::unordered_map<kube::ObjectKey, Job> jobs_;  // guarded by mutex_
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_LIVE_JOBS_H_

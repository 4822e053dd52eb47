// A Kubernetes API server's object store inside this process.
//
// It implements kube::Client with the server's semantics, so that a laptop runs the real
// reconciler: one increasing resourceVersion over all kinds, optimistic concurrency, generation,
// the status subresource, finalizers, graceful deletion of pods, owner garbage collection, label
// selectors, paged lists, watches with bookmarks and expiry, and validation by a hook per kind. The
// conformance suite (operator/kube/conformance) says what exactly.
//
// Where it differs from a server: objects are collected at once instead of in the background;
// namespaces exist without being created; spec.nodeName of a pod may be set by Update (there is no
// binding subresource); nothing but pods is defaulted unless an admission hook does; a service's
// name may not begin with a digit, which Kubernetes 1.36 allows and older ones do not.
//
//   RM_ASSIGN_OR_RETURN(auto store, memory::MemoryStore::Open({.journal_path = dir /
//   "store.journal"})); store->SetAdmission(kube::kTrainingJob, api::Admission());
//
// With a journal every acknowledged write survives the process (Durability::kProcess) or the
// machine (kMachine), and a store opened on the same file goes on where the other ended,
// resourceVersion included. Watches do not: all positions before the opening are expired.
//
// Thread-safe. Calls block for the journal's write only; no call waits for a watcher.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_STORE_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/client.h"
#include "operator/kube/memory/journal.h"
#include "operator/kube/memory/kind.h"
#include "operator/kube/memory/list_pages.h"
#include "operator/kube/memory/pod_tokens.h"
#include "operator/kube/memory/watch_hub.h"
#include "operator/kube/token_reviewer.h"

namespace ringmaster::kube::memory {

class StoreCore;

struct StoreOptions {
  // For creation and deletion times. Must outlive the store.
  const Clock* clock = &SystemClock();
  // The journal's file, in a folder that exists; empty keeps nothing.
  std::string journal_path;
  Durability durability = Durability::kProcess;
  // The journal is rewritten when it has more lines than this and than four times the live objects.
  std::int64_t compact_after = 10000;
  // Of uids and generated names. 0 takes a random one; fix it where ids must repeat.
  std::uint64_t seed = 0;
  WatchHub::Options watch;
  // The kinds served.
  std::vector<Kind> kinds = BuiltInKinds();
};

class MemoryStore final : public Client, public TokenReviewer {
 public:
  // kFailedPrecondition: another process has the journal open. kDataLoss: the journal is damaged
  // before its last line.
  static absl::StatusOr<std::unique_ptr<MemoryStore>> Open(StoreOptions options);
  ~MemoryStore() override;

  absl::StatusOr<Json> Get(const ResourceType& type, const ObjectKey& key) override;
  absl::StatusOr<ObjectList> List(const ResourceType& type, std::string_view ns,
                                  const ListOptions& options) override;
  absl::StatusOr<std::unique_ptr<WatchStream>> Watch(const ResourceType& type, std::string_view ns,
                                                     const WatchOptions& options) override;
  absl::StatusOr<Json> Create(const ResourceType& type, const Json& object) override;
  absl::StatusOr<Json> Update(const ResourceType& type, const Json& object) override;
  absl::StatusOr<Json> Patch(const ResourceType& type, const ObjectKey& key,
                             const Json& patch) override;
  absl::StatusOr<Json> PatchStatus(const ResourceType& type, const ObjectKey& key,
                                   const Json& status, std::string_view resource_version) override;
  absl::StatusOr<Json> Apply(const ResourceType& type, const Json& object,
                             const ApplyOptions& options) override;
  absl::Status Delete(const ResourceType& type, const ObjectKey& key,
                      const DeleteOptions& options) override;

  // A token that names this pod to ReviewToken with the same audience, for `lifetime` and as long
  // as the pod is there. kNotFound when it is not.
  absl::StatusOr<std::string> IssuePodToken(const ObjectKey& pod, std::string_view audience,
                                            Duration lifetime);
  absl::StatusOr<PodIdentity> ReviewToken(std::string_view token,
                                          std::string_view audience) override;

  // Replaces the hook of a kind, which must be served.
  void SetAdmission(const ResourceType& type, Admission admission);

  // What was dropped from the journal's end when it was opened; "" when nothing was.
  const std::string& torn() const { return torn_; }

  // Rewrites the journal to hold only the present.
  absl::Status Compact();
  // Forgets all watch history and list pages, as a server's compaction does.
  void ExpireHistory();

 private:
  MemoryStore(StoreOptions options, std::unique_ptr<StoreCore> core);

  // All need mutex_.
  absl::StatusOr<Kind*> Serve(const ResourceType& type);
  absl::StatusOr<ObjectPtr> Find(const Kind* kind, const ObjectKey& key);
  absl::StatusOr<Json> Store(Kind* kind, Operation operation, Json object, const Json* current);
  absl::StatusOr<Json> CreateLocked(Kind* kind, const Json& object);

  const StoreOptions options_;
  const std::uint64_t seed_;
  std::string torn_;  // set by Open alone

  mutable std::mutex mutex_;
  std::unique_ptr<StoreCore> core_;  // guarded by mutex_
  ListPages pages_;                  // guarded by mutex_
  PodTokens tokens_;                 // guarded by mutex_
};

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_STORE_H_

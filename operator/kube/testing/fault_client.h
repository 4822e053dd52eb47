// A client that passes every call on to another one, and fails or observes those that a test
// chooses.
//
//   FaultClient client(store);
//   client.FailNext({.verb = Verb::kPatchStatus, .type = "trainingjobs.training.ringmaster.dev"},
//                   absl::AbortedError("conflict"));
//   client.FailNext({.verb = Verb::kCreate, .type = "pods"}, absl::UnavailableError("cut off"),
//   /*skip=*/2,
//                   /*times=*/1, Moment::kAfter);   // the third creation happens, but its answer
//                   is lost
//   client.SetObserver([](const Call& call) { ... });  // the API calls, for a scenario's output
//
// For tests only. Thread-safe; must not outlive the client that it wraps.
#ifndef RINGMASTER_OPERATOR_KUBE_TESTING_FAULT_CLIENT_H_
#define RINGMASTER_OPERATOR_KUBE_TESTING_FAULT_CLIENT_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/client.h"

namespace ringmaster::kube::testing {

enum class Verb { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kPatchStatus, kApply, kDelete };

std::string_view ToString(Verb verb);  // "get", "patch status", ...
bool IsWrite(Verb verb);

// One call that went through.
struct Call {
  Verb verb = Verb::kGet;
  std::string type;  // ResourceType::Qualified
  ObjectKey key;  // only the namespace for kList and kWatch; before a generated name is known, ""
  absl::Status status;  // what the caller was answered
  bool injected = false;
};

// Which calls a fault is for. What is empty matches all.
struct CallFilter {
  std::optional<Verb> verb;
  std::string type;
  std::string name;
};

enum class Moment {
  kBefore,  // the call never reaches the server
  kAfter,   // the server does it, the caller is told the error: an answer that was lost
};

class FaultClient final : public Client {
 public:
  explicit FaultClient(Client& wrapped) : wrapped_(wrapped) {}

  // Answers `status` to the calls that match, after letting `skip` of them pass, `times` times;
  // then all pass again. Of several faults that match a call the first added wins, the others do
  // not count it.
  void FailNext(CallFilter filter, absl::Status status, int skip = 0, int times = 1,
                Moment moment = Moment::kBefore);
  // Faults that have not all happened yet: a test that ends with some has not tested what it meant
  // to.
  int Pending() const;
  void ClearFaults();

  // Ends all open watches with kUnavailable, as a server under load does; readers that wait are
  // woken.
  void CutWatches();

  // Called after each call, from the thread that made it, without a lock held.
  void SetObserver(std::function<void(const Call&)> observer);

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

 private:
  struct Fault {
    CallFilter filter;
    absl::Status status;
    int skip = 0;
    int times = 1;
    Moment moment = Moment::kBefore;
  };

  class CuttableStream;
  struct Cut;

  std::optional<Fault> TakeFault(const Call& call);
  // Runs `call` through the faults and tells the observer; R is a Status or a StatusOr.
  template <typename R>
  R Through(Verb verb, const ResourceType& type, ObjectKey key, const std::function<R()>& forward);

  Client& wrapped_;
  mutable std::mutex mutex_;
  std::vector<Fault> faults_;                  // guarded by mutex_
  std::function<void(const Call&)> observer_;  // guarded by mutex_
  std::vector<std::weak_ptr<Cut>> watches_;    // guarded by mutex_
};

}  // namespace ringmaster::kube::testing

#endif  // RINGMASTER_OPERATOR_KUBE_TESTING_FAULT_CLIENT_H_

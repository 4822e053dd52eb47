// The Kubernetes API as the operator uses it: one interface over unstructured JSON objects.
//
// Two implementations: `memory` (operator/kube/memory), an object store with the API server's
// semantics that `ringmaster run` embeds, and `rest`, which talks to a cluster. One conformance
// suite (operator/kube/conformance) runs against both; what it checks is the contract below.
//
// Thread safety: every method of Client may be called from any thread at any time. A WatchStream
// belongs to one reader; only its Stop may be called from another thread.
//
// Blocking: calls may wait for a network or a disk; all are bounded by the implementation's own
// time-out and then return kDeadlineExceeded or kUnavailable. After those two it is unknown whether
// a write happened: read again.
//
// Errors (errors.h gives the API server's reason for each):
//   kNotFound            the object is not there
//   kAlreadyExists       Create: the name is taken
//   kAborted             a resourceVersion, uid or field-manager conflict: read again, decide again
//   kInvalidArgument     validation refused the object, every problem with its path (Invalid);
//                        or the request itself is malformed (BadRequest)
//   kPermissionDenied    the caller may not do this
//   kOutOfRange          the resourceVersion or continue token has expired (HTTP 410): list again
//   kResourceExhausted   too many requests, or the store's disk is full: retry with back-off
//   kDeadlineExceeded,
//   kUnavailable         the server was not reached in time: retry with back-off
#ifndef RINGMASTER_OPERATOR_KUBE_CLIENT_H_
#define RINGMASTER_OPERATOR_KUBE_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/types.h"

namespace ringmaster::kube {

struct ListOptions {
  // Kubernetes' selector syntax, equality and set-based: "app=x,tier in (a, b),!canary". Empty
  // selects all.
  std::string label_selector;
  // At most this many items; 0 for all. More remain when the answer's continue_token is not empty.
  std::int64_t limit = 0;
  // From the previous page. Pages of one list show one moment; kOutOfRange once that moment is
  // forgotten.
  std::string continue_token;
};

// A list in ascending (namespace, name) order. Items have apiVersion and kind set.
struct ObjectList {
  std::vector<ObjectPtr> items;
  std::string resource_version;  // the moment shown: start a watch from here
  std::string continue_token;    // empty on the last page
};

struct WatchOptions {
  // Deliver what happened after this moment, exclusively. It comes from a list, an event or a
  // bookmark. Required.
  std::string resource_version;
  std::string label_selector;
  // Ask for kBookmark events, which carry nothing but metadata.resourceVersion: they keep a quiet
  // watch resumable.
  bool bookmarks = true;
};

enum class WatchEventType {
  kAdded,     // created, or changed so that it now matches the selector
  kModified,  // changed
  kDeleted,   // removed, or changed so that it no longer matches; the object is its last state
  kBookmark,  // only object.metadata.resourceVersion is meaningful
};

std::string_view ToString(WatchEventType type);  // "ADDED", "MODIFIED", "DELETED", "BOOKMARK"

struct WatchEvent {
  WatchEventType type = WatchEventType::kBookmark;
  ObjectPtr object;  // never null; its metadata.resourceVersion is where to resume
};

// The events of one kind in the order they happened. Destroying it ends the watch.
class WatchStream {
 public:
  virtual ~WatchStream() = default;

  // The next event. Waits up to `timeout`; with zero it returns at once, so that a test may poll.
  // kDeadlineExceeded: nothing came in time; the stream is still good, call again.
  // kOutOfRange: the position expired; list again. kCancelled: Stop was called.
  // kUnavailable: the connection ended; watch again from the last resourceVersion seen.
  // After any error but kDeadlineExceeded the stream is over and returns that error again.
  virtual absl::StatusOr<WatchEvent> Next(std::chrono::milliseconds timeout) = 0;

  // Ends the stream: a Next that waits returns kCancelled, promptly. From any thread; idempotent.
  virtual void Stop() = 0;
};

struct ApplyOptions {
  std::string field_manager;  // who owns the applied fields; required
  bool force = false;         // take fields that another manager owns, instead of kAborted
};

enum class Propagation {
  kBackground,  // the object goes now, what it owns is collected afterwards
  kForeground,  // what it owns (with blockOwnerDeletion) goes first
  kOrphan,      // what it owns stays, without the owner reference
};

struct DeleteOptions {
  std::string uid;               // if set, kAborted unless the object has this uid
  std::string resource_version;  // if set, kAborted unless the object has this resourceVersion
  Propagation propagation = Propagation::kBackground;
  // Pods only. Unset: the pod's own terminationGracePeriodSeconds. 0: remove at once, which is how
  // the node agent confirms that the containers are gone.
  std::optional<std::chrono::seconds> grace_period;
};

class Client {
 public:
  virtual ~Client() = default;

  virtual absl::StatusOr<Json> Get(const ResourceType& type, const ObjectKey& key) = 0;

  // Objects of one namespace, or of all when `ns` is empty.
  virtual absl::StatusOr<ObjectList> List(const ResourceType& type, std::string_view ns,
                                          const ListOptions& options) = 0;

  // Opens a watch on one namespace, or on all when `ns` is empty. kOutOfRange, from here or from
  // the first Next, when options.resource_version is older than the server remembers.
  virtual absl::StatusOr<std::unique_ptr<WatchStream>> Watch(const ResourceType& type,
                                                             std::string_view ns,
                                                             const WatchOptions& options) = 0;

  // Creates the object and returns it as stored. metadata.name, or metadata.generateName, and
  // metadata.namespace come from the object; uid, resourceVersion, creationTimestamp and generation
  // are the server's. A status in the object is dropped for kinds with a status subresource.
  virtual absl::StatusOr<Json> Create(const ResourceType& type, const Json& object) = 0;

  // Replaces the object but for its status, which is left as it is. metadata.resourceVersion, when
  // present, must be the stored one (kAborted); absent means unconditional, which custom resources
  // and leases do not allow (kInvalidArgument). A write that changes nothing makes no new
  // resourceVersion. Removing the last finalizer of a deleting object removes the object; the
  // object returned is then its last state.
  virtual absl::StatusOr<Json> Update(const ResourceType& type, const Json& object) = 0;

  // JSON merge patch (RFC 7396) of everything but the status. A metadata.resourceVersion in the
  // patch is a precondition (kAborted).
  virtual absl::StatusOr<Json> Patch(const ResourceType& type, const ObjectKey& key,
                                     const Json& patch) = 0;

  // JSON merge patch (RFC 7396) of the status alone: `status` is merged into the stored status,
  // null removes a field, lists are replaced whole. `resource_version` is what the patch was
  // computed from and is required: kAborted when the object has changed since, kInvalidArgument
  // when empty. The generation stays.
  virtual absl::StatusOr<Json> PatchStatus(const ResourceType& type, const ObjectKey& key,
                                           const Json& status,
                                           std::string_view resource_version) = 0;

  // Server-side apply: creates the object or merges the given fields into it, recording
  // `field_manager` as their owner; fields that this manager applied before and now leaves out are
  // removed. kAborted when another manager owns a field with another value, unless forced.
  virtual absl::StatusOr<Json> Apply(const ResourceType& type, const Json& object,
                                     const ApplyOptions& options) = 0;

  // Deletes the object, or marks it deleting (metadata.deletionTimestamp) when finalizers or a
  // grace period hold it. Deleting an object that is already deleting is OK and may only shorten
  // the grace period.
  virtual absl::Status Delete(const ResourceType& type, const ObjectKey& key,
                              const DeleteOptions& options) = 0;
};

}  // namespace ringmaster::kube

#endif  // RINGMASTER_OPERATOR_KUBE_CLIENT_H_

// Owner garbage collection: part of StoreCore, in a file of its own (garbage_collection.cc).
//
// What the controller-manager's garbage collector does in the background happens here at the end of
// each write, so that a reader never sees an orphan and a test needs no waiting:
// - an object whose ownerReferences all name absent objects is deleted (pods gracefully);
// - one that keeps some owner loses the references to those that are gone;
// - an object that is being deleted in the foreground has its dependents deleted, and goes when
// none of those that
//   block it (blockOwnerDeletion) is left.
// An owner must be in the same namespace and have the uid that the reference names.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_GARBAGE_COLLECTION_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_GARBAGE_COLLECTION_H_

namespace ringmaster::kube::memory {

inline constexpr char kForegroundFinalizer[] = "foregroundDeletion";

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_GARBAGE_COLLECTION_H_

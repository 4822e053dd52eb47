// An object as a cache keeps it: as it was given, or cut down to what is read of it and packed.
//
// Packed it takes a tenth of the memory, for some ten microseconds at each Read. What was read is
// read again for nothing while somebody still holds it: so a reader decides what is worth its
// memory, and what it holds is never an older object's, for what is packed never changes. A cache
// of a cluster's many objects packs; one that shares its objects with a store in this process must
// not.
//
// A value. Copies share what they hold, which never changes; thread-safe as a shared_ptr is.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_KEPT_OBJECT_H_
#define RINGMASTER_OPERATOR_CONTROLLER_KEPT_OBJECT_H_

#include <functional>
#include <memory>

#include "operator/kube/types.h"

namespace ringmaster::controller {

using kube::ObjectPtr;

// A copy of an object without what nobody reads of it. Name, namespace and resourceVersion must
// stay. Pure.
using Trim = std::function<kube::Json(const kube::Json& object)>;

class KeptObject {
 public:
  KeptObject() = default;  // nothing: Read gives null
  // With a trim, what is left of the object, packed; with none, the object itself. Never null.
  // Where `left` is given it is set to what Read gives, for whoever needs that next.
  KeptObject(const ObjectPtr& object, const Trim& trim, ObjectPtr* left = nullptr);

  // The same pointer as the last time, of this value or a copy, while that one is held anywhere.
  ObjectPtr Read() const;

 private:
  class Packed;

  // One of them.
  ObjectPtr whole_;
  std::shared_ptr<const Packed> packed_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_KEPT_OBJECT_H_

#include "operator/controller/kept_object.h"

#include <mutex>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace ringmaster::controller {

class KeptObject::Packed {
 public:
  explicit Packed(const ObjectPtr& object) : unpacked_(object) {
    kube::Json::to_cbor(*object, bytes_);
    bytes_.shrink_to_fit();
  }

  ObjectPtr Unpacked() const {
    const std::lock_guard lock(mutex_);
    ObjectPtr object = unpacked_.lock();
    if (object == nullptr) {
      object = std::make_shared<const kube::Json>(kube::Json::from_cbor(bytes_));
      unpacked_ = object;
    }
    return object;
  }

 private:
  std::string bytes_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const kube::Json> unpacked_;  // guarded by mutex_
};

KeptObject::KeptObject(const ObjectPtr& object, const Trim& trim, ObjectPtr* left) {
  ObjectPtr kept = trim ? std::make_shared<const kube::Json>(trim(*object)) : object;
  if (trim) {
    packed_ = std::make_shared<const Packed>(kept);
  } else {
    whole_ = kept;
  }
  if (left != nullptr) *left = std::move(kept);
}

ObjectPtr KeptObject::Read() const {
  return packed_ == nullptr ? whole_ : packed_->Unpacked();
}

}  // namespace ringmaster::controller

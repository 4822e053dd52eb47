#include "operator/controller/kept_object.h"

#include <nlohmann/json.hpp>

namespace ringmaster::controller {

KeptObject::KeptObject(const ObjectPtr& object, const Trim& trim) {
  if (!trim) {
    whole_ = object;
    return;
  }
  std::string bytes;
  kube::Json::to_cbor(trim(*object), bytes);
  bytes.shrink_to_fit();
  packed_ = std::make_shared<const std::string>(std::move(bytes));
}

ObjectPtr KeptObject::Read() const {
  if (packed_ == nullptr) return whole_;
  return std::make_shared<const kube::Json>(kube::Json::from_cbor(*packed_));
}

}  // namespace ringmaster::controller

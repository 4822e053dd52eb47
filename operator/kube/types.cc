#include "operator/kube/types.h"

namespace ringmaster::kube {

std::string ResourceType::ApiVersion() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

std::string ResourceType::Qualified() const {
  return group.empty() ? std::string(plural) : std::string(plural) + "." + std::string(group);
}

std::string ObjectKey::ToString() const {
  return ns.empty() ? name : ns + "/" + name;
}

}  // namespace ringmaster::kube

// JSON as the API server sends it, read without the bookkeeping that is half of many objects.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_READ_JSON_H_
#define RINGMASTER_OPERATOR_KUBE_REST_READ_JSON_H_

#include <string_view>

#include "operator/kube/types.h"

namespace ringmaster::kube::rest {

enum class ManagedFields {
  kRead,
  kSkip,  // metadata.managedFields, of whatever object in the text, is never built
};

// A discarded value for what is no JSON. Text may be of any depth and any bytes. Pure.
Json ReadJson(std::string_view text, ManagedFields managed_fields);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_READ_JSON_H_

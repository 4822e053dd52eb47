// Kubernetes' ObjectMeta, as far as a person writes it in a manifest. (A server drops what it does
// not know; a misspelt `lables` would vanish without a word.)
#ifndef RINGMASTER_OPERATOR_API_METADATA_H_
#define RINGMASTER_OPERATOR_API_METADATA_H_

#include "proto/schema/schema.h"

namespace ringmaster::api {

// Thread-safe; lives as long as the program.
const schema::Message& ObjectMetaSchema();

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_METADATA_H_

// Leaves out of an object what says nothing. Two programs of which one knows more fields than the
// other then write the same text, and read it, as long as the further fields have their defaults.
#ifndef RINGMASTER_PROTO_SCHEMA_DEFAULTS_H_
#define RINGMASTER_PROTO_SCHEMA_DEFAULTS_H_

#include <nlohmann/json_fwd.hpp>

#include "proto/schema/schema.h"

namespace ringmaster::schema {

// Removes, in place and at every depth, fields that have their default, and lists and maps without
// a default that are empty. CheckAndDefault puts back what is removed. The object must have passed
// that; pure and thread-safe.
void DropDefaults(const Message& schema, nlohmann::json& object);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_DEFAULTS_H_

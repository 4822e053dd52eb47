// The rules of a message as the CRD writes them: x-kubernetes-validations, in CEL. The sentences
// come from proto/schema/rules.h, which the C++ check speaks too.
#ifndef RINGMASTER_PROTO_PLUGIN_CEL_H_
#define RINGMASTER_PROTO_PLUGIN_CEL_H_

#include <string>

#include <nlohmann/json.hpp>

#include "proto/schema/schema.h"

namespace ringmaster::plugin {

// A CEL expression that says whether the path, from a message `self`, leads to a value; "true"
// where it always does.
std::string Presence(const schema::Message& message, const std::string& path);

// The validations of a message's object: its rules, its name rule if it is a kind, and that
// immutable fields stay. An empty list where it has none.
nlohmann::json MessageValidations(const schema::Message& message);

// The validations of a field's own value; an empty list where it has none.
nlohmann::json FieldValidations(const schema::Field& field);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_CEL_H_

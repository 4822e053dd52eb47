// Writes the CustomResourceDefinition of a kind: structural OpenAPI schema, CEL rules, printer
// columns, subresources.
#ifndef RINGMASTER_PROTO_PLUGIN_CRD_H_
#define RINGMASTER_PROTO_PLUGIN_CRD_H_

#include <string>

#include <nlohmann/json.hpp>

#include "proto/schema/schema.h"

namespace ringmaster::plugin {

// The structural schema of a message's objects.
nlohmann::json OpenApiOf(const schema::Message& message);

// The whole manifest; `kind` has a resource.
std::string CrdYaml(const schema::Message& kind);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_CRD_H_

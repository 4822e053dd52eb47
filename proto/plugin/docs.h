// Writes docs/api.md: a section with a table for each message that a kind reaches, in the order of
// first use.
#ifndef RINGMASTER_PROTO_PLUGIN_DOCS_H_
#define RINGMASTER_PROTO_PLUGIN_DOCS_H_

#include <string>

#include "proto/schema/schema.h"

namespace ringmaster::plugin {

// The page of one kind; `kind` has a resource.
std::string Reference(const schema::Message& kind);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_DOCS_H_

// Writes STEM.api.h: the plain structs of a .proto file, with their schema and codec declared.
#ifndef RINGMASTER_PROTO_PLUGIN_CPP_HEADER_H_
#define RINGMASTER_PROTO_PLUGIN_CPP_HEADER_H_

#include <string>

#include <google/protobuf/descriptor.h>

#include "proto/plugin/schema_builder.h"

namespace ringmaster::plugin {

std::string CppHeader(const google::protobuf::FileDescriptor& file, SchemaBuilder& builder);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_CPP_HEADER_H_

// Writes STEM.api.cc: the schema tables of a .proto file as C++ initialisers, and the JSON codec of
// its structs.
#ifndef RINGMASTER_PROTO_PLUGIN_CPP_SOURCE_H_
#define RINGMASTER_PROTO_PLUGIN_CPP_SOURCE_H_

#include <string>

#include <google/protobuf/descriptor.h>

#include "proto/plugin/schema_builder.h"

namespace ringmaster::plugin {

std::string CppSource(const google::protobuf::FileDescriptor& file, SchemaBuilder& builder);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_CPP_SOURCE_H_

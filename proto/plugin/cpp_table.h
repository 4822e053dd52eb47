// Writes schema tables as C++: the definitions of SchemaOf<T>().
#ifndef RINGMASTER_PROTO_PLUGIN_CPP_TABLE_H_
#define RINGMASTER_PROTO_PLUGIN_CPP_TABLE_H_

#include <string>

#include "proto/schema/schema.h"

namespace ringmaster::plugin {

// A function CleanPodPolicyValues() that holds the enum's table.
std::string EnumTable(const schema::Enum& enumeration);

// The specialisation of SchemaOf for the message's struct.
std::string MessageTable(const schema::Message& message);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_CPP_TABLE_H_

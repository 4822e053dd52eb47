// How a field of the API looks in C++: shared by the generators of the header and of the source.
#ifndef RINGMASTER_PROTO_PLUGIN_CPP_TYPES_H_
#define RINGMASTER_PROTO_PLUGIN_CPP_TYPES_H_

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "proto/schema/schema.h"

namespace ringmaster::plugin {

// The member's name: the proto's, with '_' behind it where C++ keeps the word for itself
// (template_).
std::string MemberName(const google::protobuf::FieldDescriptor& descriptor);

// The member's type, and its initialiser (" = 4", or empty).
std::string MemberType(const google::protobuf::FieldDescriptor& descriptor,
                       const schema::Field& field);
std::string MemberInitialiser(const google::protobuf::FieldDescriptor& descriptor,
                              const schema::Field& field);

// kRunning, from CLEAN_POD_POLICY_RUNNING of CleanPodPolicy.
std::string EnumeratorName(const google::protobuf::EnumValueDescriptor& value);

// The generated header of a .proto file, as an include names it.
std::string HeaderOf(const google::protobuf::FileDescriptor& file);

// ringmaster::training::v1alpha1
std::string NamespaceOf(const google::protobuf::FileDescriptor& file);

// The file's messages, each after those that it holds.
std::vector<const google::protobuf::Descriptor*> InOrderOfUse(
    const google::protobuf::FileDescriptor& file);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_CPP_TYPES_H_

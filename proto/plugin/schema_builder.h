// Builds the schema tables (proto/schema/schema.h) from protobuf descriptors and the options of
// ringmaster/api/options.proto. The generators of C++, CRD and documentation all start from its
// result. Single-threaded, as protoc is.
#ifndef RINGMASTER_PROTO_PLUGIN_SCHEMA_BUILDER_H_
#define RINGMASTER_PROTO_PLUGIN_SCHEMA_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/schema/schema.h"

namespace google::protobuf {
class Descriptor;
class EnumDescriptor;
class FieldDescriptor;
}  // namespace google::protobuf

namespace ringmaster::plugin {

class SchemaBuilder {
 public:
  // The table of a message and, through it, of those that it holds. The pointer lives as long as
  // the builder.
  const schema::Message* Build(const google::protobuf::Descriptor& descriptor);
  const schema::Enum* Build(const google::protobuf::EnumDescriptor& descriptor);

  // What is wrong with the options of the messages built so far ("Workers.replicas: ..."); empty
  // when nothing is.
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  schema::Field BuildField(const google::protobuf::FieldDescriptor& descriptor);
  void SetType(const google::protobuf::FieldDescriptor& descriptor, schema::Field& field);
  void CheckField(const google::protobuf::FieldDescriptor& descriptor, const schema::Field& field);
  void CheckRulePaths(const google::protobuf::Descriptor& descriptor,
                      const schema::Message& message);
  void AddOneofRules(const google::protobuf::Descriptor& descriptor, schema::Message& message);
  void AddResource(const google::protobuf::Descriptor& descriptor, schema::Message& message);

  std::map<const google::protobuf::Descriptor*, std::unique_ptr<schema::Message>> messages_;
  std::map<const google::protobuf::EnumDescriptor*, std::unique_ptr<schema::Enum>> enums_;
  std::vector<std::string> errors_;
};

// Running, from CLEAN_POD_POLICY_RUNNING of CleanPodPolicy; the enum's own name is left out.
std::string PascalCase(const std::string& upper_snake);
// RUNNING, from CLEAN_POD_POLICY_RUNNING of CleanPodPolicy.
std::string WithoutEnumName(const google::protobuf::EnumDescriptor& enumeration,
                            const std::string& value);

}  // namespace ringmaster::plugin

#endif  // RINGMASTER_PROTO_PLUGIN_SCHEMA_BUILDER_H_

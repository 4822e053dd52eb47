// JSON as YAML that people read in a diff: block style, two spaces, keys in the order of the
// alphabet, text plain where it is safe and in double quotes where it is not. Pure.
#ifndef RINGMASTER_PROTO_SCHEMA_YAML_WRITER_H_
#define RINGMASTER_PROTO_SCHEMA_YAML_WRITER_H_

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace ringmaster::schema {

// A whole document; the value is an object or a list that is not empty.
std::string ToYaml(const nlohmann::json& value);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_YAML_WRITER_H_

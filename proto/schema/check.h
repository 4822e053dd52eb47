// Walks a schema over an unstructured JSON object: fills in defaults and reports everything that is
// wrong with it at once.
//
// The order and the rules are the API server's for a CRD with the same schema (null fields count as
// absent, then defaults, then checks), so that an object that passes here passes there. Pure
// functions; thread-safe.
#ifndef RINGMASTER_PROTO_SCHEMA_CHECK_H_
#define RINGMASTER_PROTO_SCHEMA_CHECK_H_

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "proto/schema/schema.h"

namespace ringmaster::schema {

// One thing that is wrong, and where: {"spec.workers.minReplicas", "9 is more than maxReplicas (8);
// lower it or ..."}. The path is empty for the object itself.
struct Problem {
  std::string path;
  std::string message;

  bool operator==(const Problem&) const = default;
};

// Fills absent fields with their defaults, in place, and turns whole-numbered doubles of integer
// fields (4.0) into integers. Returns every problem in the order of the schema's fields; empty when
// the object is valid. `path` is put before each path. The object stays usable after problems: what
// could be defaulted is.
std::vector<Problem> CheckAndDefault(const Message& schema, nlohmann::json& object,
                                     std::string_view path = "");

// What may not change between two objects that are each valid: fields marked immutable.
std::vector<Problem> CheckUpdate(const Message& schema, const nlohmann::json& before,
                                 const nlohmann::json& after, std::string_view path = "");

// What is wrong with the name of an object of this kind: it becomes part of host names, so it is a
// DNS label (RFC 1035). Empty when nothing is.
std::string CheckName(const Resource& resource, std::string_view name);

// "path: message", one problem a line.
std::string FormatProblems(const std::vector<Problem>& problems);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_CHECK_H_

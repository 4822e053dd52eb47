// Rules between fields: what they mean in C++, and the sentences that both this check and the CRD's
// CEL rules speak. Pure functions; thread-safe.
#ifndef RINGMASTER_PROTO_SCHEMA_RULES_H_
#define RINGMASTER_PROTO_SCHEMA_RULES_H_

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "proto/schema/check.h"
#include "proto/schema/schema.h"

namespace ringmaster::schema {

// What the rule demands of the object, as a sentence without values: "set exactly one of a, b;
// mend".
std::string Demand(const Rule& rule);

// The pieces of "9 is more than maxReplicas (8); lower it" around the two values, shared with the
// CEL text.
struct LessOrEqualText {
  std::string middle;  // " is more than maxReplicas ("
  std::string end;     // "); lower it"
};
LessOrEqualText TextOf(const Rule& less_or_equal);

// What breaks the rule in `object`, an object of the rule's message at `path`. A value of the wrong
// type was reported by the field's own check and breaks no rule here.
std::optional<Problem> Evaluate(const Rule& rule, const nlohmann::json& object,
                                std::string_view path);

// The name rule's sentences; the CRD checks both in CEL.
std::string NameLengthDemand(const Resource& resource);
inline constexpr char kNamePattern[] = "[a-z]([-a-z0-9]*[a-z0-9])?";
inline constexpr char kNameDemand[] =
    "must be lower-case letters, digits and '-', start with a letter and end with a letter or "
    "digit";

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_RULES_H_

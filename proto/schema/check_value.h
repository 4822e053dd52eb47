// Checks of one value by its field's type and bounds, and the words that they use. Internal to the
// walker.
#ifndef RINGMASTER_PROTO_SCHEMA_CHECK_VALUE_H_
#define RINGMASTER_PROTO_SCHEMA_CHECK_VALUE_H_

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "proto/schema/check.h"
#include "proto/schema/schema.h"

namespace ringmaster::schema {

inline constexpr char kImmutableDemand[] =
    "cannot change once it is set; delete the job, or give the new one another name";

// Checks one value (an item, for lists and maps) of any type but kMessage, reporting at `path`.
// Whole-numbered doubles of integer fields become integers in place.
std::vector<Problem> CheckValue(const Field& field, nlohmann::json& value, std::string_view path);

// "must be an integer, not a string (\"four\")"
std::string WrongType(std::string_view wanted, const nlohmann::json& value);

// At most 60 characters of the text, "..." where it goes on: messages quote what they refuse.
std::string Shortened(std::string_view text);

// The text up to its first full stop that ends a sentence.
std::string FirstSentence(const std::string& text);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_CHECK_VALUE_H_

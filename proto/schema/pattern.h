// Regular expressions in the dialect that the API server speaks (RE2: linear time, whatever the
// text). Thread-safe.
#ifndef RINGMASTER_PROTO_SCHEMA_PATTERN_H_
#define RINGMASTER_PROTO_SCHEMA_PATTERN_H_

#include <string>
#include <string_view>

namespace ringmaster::schema {

// Whether the whole text matches; false too for a malformed pattern. For the patterns of schemas:
// each is kept compiled for good.
bool MatchesWhole(std::string_view text, const std::string& pattern);

// What is wrong with the pattern; empty when nothing is.
std::string PatternError(const std::string& pattern);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_PATTERN_H_

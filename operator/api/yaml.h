// YAML to JSON as kubectl does it (sigs.k8s.io/yaml), with the line of every path.
//
// Plain scalars resolve by YAML 1.1: yes, no, on, off and y, n are booleans, 010 is octal, 1_000 a
// number; quoted scalars stay strings. Anchors, aliases and merge keys work, within bounds.
// Refused, each with its line: duplicate keys, keys that are no scalars, numbers that are not
// finite, unknown tags, a second document, more than 1 MiB of text, control characters and text
// that is not UTF-8, and aliases that add up to more than 100,000 values (a "billion laughs") or
// nest deeper than 100.
//
// Pure and thread-safe; throws nothing.
#ifndef RINGMASTER_OPERATOR_API_YAML_H_
#define RINGMASTER_OPERATOR_API_YAML_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/api/diagnostic.h"

namespace ringmaster::api {

inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxYamlValues = 100'000;
inline constexpr std::size_t kMaxYamlDepth = 100;

struct YamlDocument {
  nlohmann::json value;  // null for an empty document
  SourceMap lines;
  // Empty when all is well. After a syntax error `value` is null; after others it holds what could
  // be read.
  std::vector<Diagnostic> errors;
};

YamlDocument ParseYaml(std::string_view text);

// What a plain (unquoted) scalar means: null, a boolean, a number or a string. Nothing where it is
// not finite.
std::optional<nlohmann::json> ResolvePlainScalar(std::string_view text);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_YAML_H_

// Paths into a JSON object, as messages and rules write them: spec.workers.replicas,
// layers[2].conv2d, labels["a.b/c"]. Pure functions.
#ifndef RINGMASTER_PROTO_SCHEMA_PATH_H_
#define RINGMASTER_PROTO_SCHEMA_PATH_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"

namespace ringmaster::schema {

// A field's name, or the place of a list's item.
using Step = std::variant<std::string, std::size_t>;

// The path one step further. Names that are not plain words stand in brackets and quotes; an empty
// `path` is the root.
std::string Join(std::string_view path, std::string_view name);
std::string Join(std::string_view path, std::size_t index);

// kInvalidArgument, naming the place, where the text is not a path: "a..b", "a[", "".
absl::StatusOr<std::vector<Step>> ParsePath(std::string_view path);

// The value at the path, or null where a step is missing or null or of another type. A malformed
// path finds nothing.
const nlohmann::json* FindPath(const nlohmann::json& object, std::string_view path);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_PATH_H_

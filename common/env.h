// Every environment variable that Ringmaster's programs read, declared once: name, type, default,
// meaning. Nothing else calls getenv.
//
// A value that does not parse is an error that names the variable, never a silent default.
// docs/env.md and `--print-config` are written from this table; a test keeps the page current
// (UPDATE_GOLDEN=1 writes it).
#ifndef RINGMASTER_COMMON_ENV_H_
#define RINGMASTER_COMMON_ENV_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ringmaster::env {

enum class Type {
  kString,
  kInteger,
  kBoolean,
  kNetworks
};  // kNetworks: interfaces and subnets (peer_address.h)
enum class Audience {
  kUser,
  kInternal,
  kDebug
};  // set by people; set by our own programs; for tests and bug hunts

struct Variable {
  const char* name;
  Type type;
  const char* default_value;  // as text; "" for none
  Audience audience;
  const char* help;
  const char* choices = nullptr;  // "a|b|c" where a value must be one of these
};

// All of them, sorted by name.
std::span<const Variable> All();

// The value, or the declared default. The name must be declared in env.cc. kInvalidArgument when it
// does not parse.
std::string GetString(const char* name);
absl::StatusOr<int64_t> GetInteger(const char* name);
absl::StatusOr<bool> GetBoolean(const char* name);

// Whether the variable is set to something in this process's environment.
bool IsSet(const char* name);

// Whether the variable takes this value, whatever is in force here; where it is empty, or the name
// is declared nowhere, anything goes. kInvalidArgument: "environment variable NAME: 'x' is not
// ...".
absl::Status CheckValue(std::string_view name, std::string_view value);

// Parses every declared variable that is set; the first that does not parse is the error. Called at
// a program's start.
absl::Status CheckAll();

// "NAME=value  (environment|default)  help", a line each: what --print-config writes.
std::string Describe();

// The whole of docs/env.md.
std::string Reference();

}  // namespace ringmaster::env

#endif  // RINGMASTER_COMMON_ENV_H_

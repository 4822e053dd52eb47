// What the generated codec of the API types is made of: one value to JSON and back. Only generated
// code includes this.
//
// Encoding prints zeros, leaves out absent optionals, unspecified enums and numbers that are not
// finite. Decoding takes JSON that CheckAndDefault has passed: a value of the wrong type is a bug
// of the caller and throws nlohmann's exception.
#ifndef RINGMASTER_PROTO_SCHEMA_CODEC_H_
#define RINGMASTER_PROTO_SCHEMA_CODEC_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/clock.h"

namespace ringmaster::schema::codec {

using Json = nlohmann::json;

// An enum that is left unspecified, encoded; no other value encodes to it.
inline Json Absent() {
  return Json(Json::value_t::discarded);
}

template <typename T>
Json Encode(const T& value) {
  if constexpr (requires { ToJson(value); }) {
    return ToJson(value);
  } else {
    return Json(value);
  }
}
inline Json Encode(const Json& value) {
  return value.is_null() ? Absent() : value;
}
inline Json Encode(double value) {
  return std::isfinite(value) ? Json(value) : Absent();
}
inline Json Encode(Time value) {
  return FormatTime(value);
}

template <typename T>
Json Encode(const std::optional<T>& value) {
  return value ? Encode(*value) : Absent();
}

template <typename T>
Json Encode(const std::vector<T>& list) {
  Json encoded = Json::array();
  for (const T& item : list) {
    if (Json value = Encode(item); !value.is_discarded()) encoded.push_back(std::move(value));
  }
  return encoded;
}

template <typename T>
Json Encode(const std::map<std::string, T>& map) {
  Json encoded = Json::object();
  for (const auto& [key, item] : map) {
    if (Json value = Encode(item); !value.is_discarded()) encoded[key] = std::move(value);
  }
  return encoded;
}

template <typename T>
void Put(Json& object, const char* name, const T& value) {
  if (Json encoded = Encode(value); !encoded.is_discarded()) object[name] = std::move(encoded);
}

template <typename T>
void Decode(const Json& value, T& out) {
  if constexpr (requires { FromCheckedJson(value, out); }) {
    FromCheckedJson(value, out);
  } else {
    value.get_to(out);
  }
}
inline void Decode(const Json& value, Json& out) {
  out = value;
}
inline void Decode(const Json& value, Time& out) {
  out = ParseTime(value.get_ref<const std::string&>()).value();
}

template <typename T>
void Decode(const Json& value, std::optional<T>& out) {
  Decode(value, out.emplace());
}

template <typename T>
void Decode(const Json& list, std::vector<T>& out) {
  out.clear();
  for (const Json& item : list) Decode(item, out.emplace_back());
}

template <typename T>
void Decode(const Json& map, std::map<std::string, T>& out) {
  out.clear();
  for (const auto& [key, item] : map.items()) Decode(item, out[key]);
}

// Leaves `out` as it is where the field is absent or null.
template <typename T>
void Get(const Json& object, const char* name, T& out) {
  const auto found = object.find(name);
  if (found != object.end() && !found->is_null()) Decode(*found, out);
}

}  // namespace ringmaster::schema::codec

#endif  // RINGMASTER_PROTO_SCHEMA_CODEC_H_

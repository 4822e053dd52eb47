#include "proto/schema/defaults.h"

#include <nlohmann/json.hpp>

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

void DropInside(const Field& field, Json& value) {
  if (field.type != Type::kMessage) return;
  if (field.shape == Shape::kSingle) return DropDefaults(*field.message, value);
  for (Json& item : value) DropDefaults(*field.message, item);
}

bool IsDefault(const Field& field, const Json& value) {
  if (field.default_json.empty())
    return field.shape != Shape::kSingle && !field.required && value.empty();
  Json normal = Json::parse(field.default_json);
  DropInside(field, normal);
  return value == normal;
}

}  // namespace

void DropDefaults(const Message& schema, Json& object) {
  for (const Field& field : schema.fields) {
    const auto found = object.find(field.name);
    if (found == object.end()) continue;
    DropInside(field, *found);
    if (IsDefault(field, *found)) object.erase(found);
  }
}

}  // namespace ringmaster::schema

#include "proto/plugin/crd.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "proto/plugin/cel.h"
#include "proto/schema/path.h"
#include "proto/schema/yaml_writer.h"

namespace ringmaster::plugin {
namespace {

using Json = nlohmann::json;
using schema::Field;
using schema::Shape;
using schema::Type;

// 10000 rather than 10000.0.
Json Number(double value) {
  if (std::trunc(value) == value && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

void AddNumberBounds(const Field& field, Json& schema) {
  if (field.minimum) schema["minimum"] = Number(*field.minimum);
  if (field.minimum && field.exclusive_minimum) schema["exclusiveMinimum"] = true;
  if (field.maximum) schema["maximum"] = Number(*field.maximum);
}

Json StringSchema(const Field& field) {
  Json schema = {{"type", "string"}};
  if (field.min_length) schema["minLength"] = *field.min_length;
  if (field.max_length) schema["maxLength"] = *field.max_length;
  if (!field.pattern.empty()) schema["pattern"] = fmt::format("^(?:{})$", field.pattern);
  if (!field.allowed.empty()) schema["enum"] = field.allowed;
  return schema;
}

Json EnumSchema(const schema::Enum& enumeration) {
  Json names = Json::array();
  for (const schema::EnumValue& value : enumeration.values) names.push_back(value.name);
  return {{"type", "string"}, {"enum", names}};
}

Json OpenObject() {
  return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
}

// The rest of the object stays unknown and passed through; only what a CEL rule reads has a schema,
// since it sees nothing else.
Json RawSchema(const Field& field) {
  Json root = OpenObject();
  for (const schema::RawField& raw : field.raw_fields) {
    const auto steps = schema::ParsePath(raw.path);
    Json* at = &root;
    for (const schema::Step& step : *steps) {
      if (const auto* name = std::get_if<std::string>(&step)) {
        if ((*at)["type"] != "object") *at = OpenObject();
        at = &(*at)["properties"][*name];
        if (at->is_null()) *at = OpenObject();
      } else {
        *at = {{"type", "array"}, {"items", OpenObject()}};
        at = &(*at)["items"];
      }
    }
    *at = {{"type", "array"}, {"items", {{"type", "string"}}}};
  }
  return root;
}

Json ValueSchema(const Field& field) {
  Json schema;
  switch (field.type) {
    case Type::kBool:
      return {{"type", "boolean"}};
    case Type::kInt32:
    case Type::kInt64:
      schema = {{"type", "integer"}, {"format", field.type == Type::kInt32 ? "int32" : "int64"}};
      AddNumberBounds(field, schema);
      return schema;
    case Type::kDouble:
      schema = {{"type", "number"}, {"format", "double"}};
      AddNumberBounds(field, schema);
      return schema;
    case Type::kString:
      return StringSchema(field);
    case Type::kTimestamp:
      return {{"type", "string"}, {"format", "date-time"}};
    case Type::kEnum:
      return EnumSchema(*field.enumeration);
    case Type::kMessage:
      return OpenApiOf(*field.message);
    case Type::kRaw:
      return RawSchema(field);
  }
  return schema;
}

Json ListSchema(const Field& field) {
  Json schema = {{"type", "array"}, {"items", ValueSchema(field)}};
  if (field.min_items) schema["minItems"] = *field.min_items;
  if (field.max_items) schema["maxItems"] = *field.max_items;
  const bool keyed = !field.list_map_keys.empty() && !field.atomic;
  schema["x-kubernetes-list-type"] = keyed ? "map" : "atomic";
  if (keyed) schema["x-kubernetes-list-map-keys"] = field.list_map_keys;
  return schema;
}

Json MapSchema(const Field& field) {
  Json schema = {{"type", "object"}, {"additionalProperties", ValueSchema(field)}};
  if (field.min_items) schema["minProperties"] = *field.min_items;
  if (field.max_items) schema["maxProperties"] = *field.max_items;
  return schema;
}

Json FieldSchema(const Field& field) {
  Json schema = field.shape == Shape::kList  ? ListSchema(field)
                : field.shape == Shape::kMap ? MapSchema(field)
                                             : ValueSchema(field);
  if (!field.description.empty()) schema["description"] = field.description;
  if (!field.format.empty()) schema["format"] = field.format;
  if (field.atomic && field.shape == Shape::kSingle) schema["x-kubernetes-map-type"] = "atomic";
  if (!field.default_json.empty()) schema["default"] = Json::parse(field.default_json);
  for (const Json& validation : FieldValidations(field))
    schema["x-kubernetes-validations"].push_back(validation);
  return schema;
}

// What the API server fills in or checks by itself stays bare.
bool IsServersOwn(const schema::Message& message, const Field& field) {
  return message.resource &&
         (field.name == "apiVersion" || field.name == "kind" || field.name == "metadata");
}

Json Columns(const schema::Resource& resource) {
  Json columns = Json::array();
  for (const schema::PrinterColumn& column : resource.printer_columns) {
    Json entry = {{"name", column.name},
                  {"type", column.type},
                  {"jsonPath", column.json_path},
                  {"description", column.description}};
    if (column.priority != 0) entry["priority"] = column.priority;
    columns.push_back(std::move(entry));
  }
  return columns;
}

Json Subresources(const schema::Resource& resource) {
  Json subresources = {{"status", Json::object()}};
  if (!resource.scale_spec_replicas_path.empty()) {
    subresources["scale"] = {{"specReplicasPath", resource.scale_spec_replicas_path},
                             {"statusReplicasPath", resource.scale_status_replicas_path},
                             {"labelSelectorPath", resource.scale_label_selector_path}};
  }
  return subresources;
}

}  // namespace

Json OpenApiOf(const schema::Message& message) {
  Json schema = {{"type", "object"}};
  if (!message.description.empty()) schema["description"] = message.description;
  for (const Field& field : message.fields) {
    if (IsServersOwn(message, field)) {
      schema["properties"][field.name] = {{"type", field.name == "metadata" ? "object" : "string"}};
      continue;
    }
    schema["properties"][field.name] = FieldSchema(field);
    if (field.required) schema["required"].push_back(field.name);
  }
  if (Json validations = MessageValidations(message); !validations.empty()) {
    schema["x-kubernetes-validations"] = std::move(validations);
  }
  return schema;
}

std::string CrdYaml(const schema::Message& kind) {
  const schema::Resource& resource = *kind.resource;
  Json names = {{"kind", resource.kind},
                {"listKind", resource.kind + "List"},
                {"plural", resource.plural},
                {"singular", resource.singular},
                {"shortNames", resource.short_names},
                {"categories", resource.categories}};
  const Json version = {{"name", resource.version},
                        {"served", true},
                        {"storage", true},
                        {"additionalPrinterColumns", Columns(resource)},
                        {"schema", {{"openAPIV3Schema", OpenApiOf(kind)}}},
                        {"subresources", Subresources(resource)}};
  const Json crd = {{"apiVersion", "apiextensions.k8s.io/v1"},
                    {"kind", "CustomResourceDefinition"},
                    {"metadata", {{"name", resource.plural + "." + resource.group}}},
                    {"spec",
                     {{"group", resource.group},
                      {"names", std::move(names)},
                      {"scope", "Namespaced"},
                      {"versions", Json::array({version})}}}};
  return "# Generated from proto/ by protoc-gen-ringmaster. Do not edit.\n---\n" +
         schema::ToYaml(crd);
}

}  // namespace ringmaster::plugin

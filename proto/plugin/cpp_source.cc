#include "proto/plugin/cpp_source.h"

#include <fmt/format.h>

#include "proto/plugin/cpp_table.h"
#include "proto/plugin/cpp_types.h"

namespace ringmaster::plugin {
namespace {

namespace pb = google::protobuf;

std::string EnumCodec(const pb::EnumDescriptor& enumeration, SchemaBuilder& builder) {
  const schema::Enum& table = *builder.Build(enumeration);
  std::string encode, decode;
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const std::string enumerator = fmt::format(
        "{}::{}", enumeration.name(), EnumeratorName(*enumeration.value(static_cast<int>(i) + 1)));
    encode += fmt::format("    case {}:\n      return \"{}\";\n", enumerator, table.values[i].name);
    decode += fmt::format("  if (json == \"{}\") out = {};\n", table.values[i].name, enumerator);
  }
  return fmt::format(
      "nlohmann::json ToJson({0} value) {{\n  switch (value) {{\n    case {0}::kUnspecified:\n     "
      " break;\n{1}  }}\n"
      "  return codec::Absent();\n}}\n\n"
      "void FromCheckedJson(const nlohmann::json& json, {0}& out) {{\n  out = "
      "{0}::kUnspecified;\n{2}}}\n\n",
      enumeration.name(), encode, decode);
}

std::string ResourceEncode(const schema::Message& message) {
  if (!message.resource) return "";
  return fmt::format(
      "  json[\"apiVersion\"] = \"{}\";\n  json[\"kind\"] = \"{}\";\n  codec::Put(json, "
      "\"metadata\", value.metadata);\n",
      message.resource->ApiVersion(), message.resource->kind);
}

std::string MessageCodec(const pb::Descriptor& descriptor, const schema::Message& message) {
  std::string encode = ResourceEncode(message);
  std::string decode = message.resource ? "  codec::Get(json, \"metadata\", out.metadata);\n" : "";
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const pb::FieldDescriptor& field = *descriptor.field(i);
    encode += fmt::format("  codec::Put(json, \"{}\", value.{});\n", field.json_name(),
                          MemberName(field));
    decode +=
        fmt::format("  codec::Get(json, \"{}\", out.{});\n", field.json_name(), MemberName(field));
  }
  const bool used = !encode.empty();
  return fmt::format(
      "nlohmann::json ToJson(const {0}&{1}) {{\n  nlohmann::json json = "
      "nlohmann::json::object();\n{2}  return json;\n}}\n\n"
      "void FromCheckedJson(const nlohmann::json&{3}, {0}& out) {{\n  out = {{}};\n{4}}}\n\n",
      descriptor.name(), used ? " value" : "", encode, used ? " json" : "", decode);
}

std::string FromJson(const std::string& name) {
  return fmt::format(
      "template <>\nabsl::StatusOr<{0}> FromJson<{0}>(nlohmann::json json) {{\n"
      "  const auto problems = schema::CheckAndDefault(SchemaOf<{0}>(), json);\n"
      "  if (!problems.empty()) return "
      "absl::InvalidArgumentError(schema::FormatProblems(problems));\n"
      "  {0} value;\n  FromCheckedJson(json, value);\n  return value;\n}}\n\n",
      name);
}

}  // namespace

std::string CppSource(const pb::FileDescriptor& file, SchemaBuilder& builder) {
  std::string out = fmt::format(
      "// Generated from {} by protoc-gen-ringmaster. Do not edit.\n#include \"{}\"\n\n"
      "#include \"proto/schema/check.h\"\n#include \"proto/schema/codec.h\"\n\nnamespace {} {{\n\n"
      "namespace codec = schema::codec;\n\n",
      file.name(), HeaderOf(file), NamespaceOf(file));
  for (int i = 0; i < file.enum_type_count(); ++i) {
    out += EnumTable(*builder.Build(*file.enum_type(i)));
    out += EnumCodec(*file.enum_type(i), builder);
  }
  for (const pb::Descriptor* descriptor : InOrderOfUse(file)) {
    const schema::Message& message = *builder.Build(*descriptor);
    out +=
        MessageTable(message) + MessageCodec(*descriptor, message) + FromJson(descriptor->name());
  }
  return out + fmt::format("}}  // namespace {}\n", NamespaceOf(file));
}

}  // namespace ringmaster::plugin

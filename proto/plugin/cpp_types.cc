#include "proto/plugin/cpp_types.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "proto/plugin/schema_builder.h"

namespace ringmaster::plugin {
namespace {

namespace pb = google::protobuf;
using schema::Shape;
using schema::Type;

std::string ValueType(const schema::Field& field) {
  switch (field.type) {
    case Type::kBool:
      return "bool";
    case Type::kInt32:
      return "std::int32_t";
    case Type::kInt64:
      return "std::int64_t";
    case Type::kDouble:
      return "double";
    case Type::kString:
      return "std::string";
    case Type::kTimestamp:
      return "Time";
    case Type::kEnum:
      return field.enumeration->name;
    case Type::kMessage:
      return field.message->name;
    case Type::kRaw:
      return "nlohmann::json";
  }
  return "";
}

// A member that is always there: its absence means its default.
bool IsPlain(const pb::FieldDescriptor& descriptor, const schema::Field& field) {
  if (descriptor.real_containing_oneof() != nullptr || field.type == Type::kTimestamp) return false;
  if (field.type == Type::kMessage) return field.required || field.default_json == "{}";
  return field.type == Type::kRaw || !descriptor.has_optional_keyword();
}

std::string EnumeratorOf(const pb::EnumDescriptor& enumeration, const schema::Field& field,
                         const std::string& spelling) {
  for (std::size_t i = 0; i < field.enumeration->values.size(); ++i) {
    const int index = static_cast<int>(i) + 1;  // the table leaves UNSPECIFIED out
    if (field.enumeration->values[i].name == spelling)
      return EnumeratorName(*enumeration.value(index));
  }
  return "kUnspecified";
}

}  // namespace

std::string MemberName(const pb::FieldDescriptor& descriptor) {
  static const std::set<std::string> kKeywords = {
      "bool",     "case",      "class",    "const",  "default",  "delete",   "double",  "else",
      "enum",     "explicit",  "export",   "false",  "float",    "for",      "if",      "int",
      "long",     "namespace", "new",      "not",    "operator", "or",       "private", "protected",
      "public",   "short",     "static",   "struct", "switch",   "template", "this",    "true",
      "typename", "union",     "volatile", "while"};
  return kKeywords.contains(descriptor.name()) ? descriptor.name() + "_" : descriptor.name();
}

std::string MemberType(const pb::FieldDescriptor& descriptor, const schema::Field& field) {
  const std::string value = ValueType(field);
  if (field.shape == Shape::kList) return fmt::format("std::vector<{}>", value);
  if (field.shape == Shape::kMap) return fmt::format("std::map<std::string, {}>", value);
  return IsPlain(descriptor, field) ? value : fmt::format("std::optional<{}>", value);
}

std::string MemberInitialiser(const pb::FieldDescriptor& descriptor, const schema::Field& field) {
  if (field.shape != Shape::kSingle || field.type == Type::kMessage || field.type == Type::kRaw)
    return "";
  if (field.type == Type::kEnum) {
    if (!IsPlain(descriptor, field)) return "";
    const auto spelling = field.default_json.empty()
                              ? ""
                              : nlohmann::json::parse(field.default_json).get<std::string>();
    return fmt::format(" = {}::{}", field.enumeration->name,
                       EnumeratorOf(*descriptor.enum_type(), field, spelling));
  }
  if (!field.default_json.empty()) return " = " + field.default_json;
  if (!IsPlain(descriptor, field) || field.type == Type::kString) return "";
  return field.type == Type::kBool ? " = false" : " = 0";
}

std::string EnumeratorName(const pb::EnumValueDescriptor& value) {
  return "k" + PascalCase(WithoutEnumName(*value.type(), value.name()));
}

std::string HeaderOf(const pb::FileDescriptor& file) {
  return "proto/" + file.name().substr(0, file.name().rfind('.')) + ".api.h";
}

std::string NamespaceOf(const pb::FileDescriptor& file) {
  std::string name;
  for (const char c : file.package()) name += c == '.' ? "::" : std::string(1, c);
  return name;
}

std::vector<const pb::Descriptor*> InOrderOfUse(const pb::FileDescriptor& file) {
  std::vector<const pb::Descriptor*> order;
  std::set<const pb::Descriptor*> seen;
  const auto visit = [&](const auto& self, const pb::Descriptor& message) -> void {
    if (message.file() != &file || !seen.insert(&message).second) return;
    for (int i = 0; i < message.field_count(); ++i) {
      const pb::Descriptor* held = message.field(i)->message_type();
      if (held != nullptr && !message.field(i)->is_map()) self(self, *held);
    }
    order.push_back(&message);
  };
  for (int i = 0; i < file.message_type_count(); ++i) visit(visit, *file.message_type(i));
  return order;
}

}  // namespace ringmaster::plugin

#include "proto/plugin/schema_builder.h"

#include <cctype>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <nlohmann/json.hpp>

#include "proto/schema/path.h"
#include "proto/schema/pattern.h"
#include "ringmaster/api/options.pb.h"

namespace ringmaster::plugin {
namespace {

namespace pb = google::protobuf;
using schema::Type;

// The comment above a declaration, its lines joined.
template <typename Descriptor>
std::string CommentOf(const Descriptor& descriptor) {
  pb::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return "";
  std::string text;
  for (const char c : location.leading_comments) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::optional<std::uint32_t> Positive(bool has, std::uint32_t value) {
  return has ? std::optional<std::uint32_t>(value) : std::nullopt;
}

void CopyRules(const api::FieldRules& rules, schema::Field& field) {
  field.required = rules.required();
  field.default_json = rules.default_json();
  if (rules.has_minimum()) field.minimum = rules.minimum();
  if (rules.has_maximum()) field.maximum = rules.maximum();
  field.exclusive_minimum = rules.exclusive_minimum();
  field.min_length = Positive(rules.has_min_length(), rules.min_length());
  field.max_length = Positive(rules.has_max_length(), rules.max_length());
  field.pattern = rules.pattern();
  field.pattern_help = rules.pattern_help();
  field.allowed.assign(rules.allowed().begin(), rules.allowed().end());
  field.min_items = Positive(rules.has_min_items(), rules.min_items());
  field.max_items = Positive(rules.has_max_items(), rules.max_items());
  field.list_map_keys.assign(rules.list_map_keys().begin(), rules.list_map_keys().end());
  field.immutable = rules.immutable();
  field.atomic = rules.atomic();
  field.format = rules.format();
  for (const std::string& path : rules.raw_fields()) field.raw_fields.push_back({path});
}

schema::Rule PairRule(schema::RuleKind kind, const std::string& first, const std::string& second) {
  return {.kind = kind, .paths = {first, second}, .mend = ""};
}

schema::Rule SetRule(schema::RuleKind kind, const api::FieldSet& set) {
  return {.kind = kind, .paths = {set.fields().begin(), set.fields().end()}, .mend = ""};
}

schema::Rule ConvertRule(const api::Rule& rule) {
  schema::Rule converted;
  switch (rule.kind_case()) {
    case api::Rule::kLessOrEqual:
      converted = PairRule(schema::RuleKind::kLessOrEqual, rule.less_or_equal().left(),
                           rule.less_or_equal().right());
      break;
    case api::Rule::kFieldNeeds:
      converted = PairRule(schema::RuleKind::kRequires, rule.field_needs().field(),
                           rule.field_needs().needs());
      break;
    case api::Rule::kExactlyOne:
      converted = SetRule(schema::RuleKind::kExactlyOne, rule.exactly_one());
      break;
    case api::Rule::kAtMostOne:
      converted = SetRule(schema::RuleKind::kAtMostOne, rule.at_most_one());
      break;
    case api::Rule::kAtLeastOne:
      converted = SetRule(schema::RuleKind::kAtLeastOne, rule.at_least_one());
      break;
    case api::Rule::KIND_NOT_SET:
      break;
  }
  converted.mend = rule.mend();
  return converted;
}

schema::Field OnlyValue(const std::string& name, const std::string& value,
                        const std::string& description) {
  schema::Field field;
  field.name = name;
  field.description = description;
  field.required = true;
  field.allowed = {value};
  return field;
}

schema::Field MetadataField() {
  schema::Field field;
  field.name = "metadata";
  field.description = "Name, labels and annotations, as of every Kubernetes object.";
  field.type = Type::kRaw;
  field.required = true;
  return field;
}

// The field that a rule's path leads to, the raw field where it goes on into one; null where there
// is none.
const schema::Field* FieldAt(const schema::Message& message, const std::string& path) {
  const schema::Message* inside = &message;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = path.find('.', begin);
    const schema::Field* field = schema::FindField(*inside, path.substr(begin, dot - begin));
    if (field == nullptr || dot == std::string::npos || field->type == Type::kRaw) return field;
    if (field->message == nullptr) return nullptr;
    inside = field->message;
    begin = dot + 1;
  }
}

}  // namespace

std::string PascalCase(const std::string& upper_snake) {
  std::string pascal;
  bool upper = true;
  for (const char c : upper_snake) {
    if (c == '_') {
      upper = true;
      continue;
    }
    const auto letter = static_cast<unsigned char>(c);
    pascal += static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
    upper = false;
  }
  return pascal;
}

std::string WithoutEnumName(const pb::EnumDescriptor& enumeration, const std::string& value) {
  std::string prefix;
  for (const char c : enumeration.name()) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  prefix += '_';
  return value.starts_with(prefix) ? value.substr(prefix.size()) : value;
}

const schema::Enum* SchemaBuilder::Build(const pb::EnumDescriptor& descriptor) {
  auto& built = enums_[&descriptor];
  if (built) return built.get();
  built = std::make_unique<schema::Enum>();
  built->name = descriptor.name();
  built->description = CommentOf(descriptor);
  for (int i = 0; i < descriptor.value_count(); ++i) {
    const pb::EnumValueDescriptor& value = *descriptor.value(i);
    if (value.number() == 0) continue;  // UNSPECIFIED is how C++ says absent
    std::string name = value.options().GetExtension(api::spelling);
    if (name.empty()) name = PascalCase(WithoutEnumName(descriptor, value.name()));
    built->values.push_back({std::move(name), CommentOf(value)});
  }
  return built.get();
}

const schema::Message* SchemaBuilder::Build(const pb::Descriptor& descriptor) {
  auto& slot = messages_[&descriptor];
  if (slot) return slot.get();
  slot = std::make_unique<schema::Message>();
  schema::Message& message = *slot;  // map nodes stay where they are while fields add more
  message.name = descriptor.name();
  message.description = CommentOf(descriptor);
  const api::MessageRules& rules = descriptor.options().GetExtension(api::message);
  if (rules.has_resource()) AddResource(descriptor, message);
  for (int i = 0; i < descriptor.field_count(); ++i)
    message.fields.push_back(BuildField(*descriptor.field(i)));
  AddOneofRules(descriptor, message);
  for (const api::Rule& rule : rules.rules()) message.rules.push_back(ConvertRule(rule));
  CheckRulePaths(descriptor, message);
  return &message;
}

void SchemaBuilder::AddOneofRules(const pb::Descriptor& descriptor, schema::Message& message) {
  for (int i = 0; i < descriptor.real_oneof_decl_count(); ++i) {
    const pb::OneofDescriptor& oneof = *descriptor.oneof_decl(i);
    schema::Rule rule;
    const bool required = oneof.options().GetExtension(api::oneof_required);
    rule.kind = required ? schema::RuleKind::kExactlyOne : schema::RuleKind::kAtMostOne;
    for (int j = 0; j < oneof.field_count(); ++j) rule.paths.push_back(oneof.field(j)->json_name());
    message.rules.push_back(std::move(rule));
  }
}

void SchemaBuilder::AddResource(const pb::Descriptor& descriptor, schema::Message& message) {
  const api::ResourceRules& rules = descriptor.options().GetExtension(api::message).resource();
  const std::string& package = descriptor.file()->package();
  schema::Resource resource;
  resource.group = rules.group();
  resource.version = package.substr(package.rfind('.') + 1);
  resource.kind = descriptor.name();
  resource.plural = rules.plural();
  resource.singular = rules.singular();
  resource.short_names.assign(rules.short_names().begin(), rules.short_names().end());
  resource.categories.assign(rules.categories().begin(), rules.categories().end());
  for (const api::PrinterColumn& column : rules.printer_columns()) {
    resource.printer_columns.push_back({column.name(), column.type(), column.json_path(),
                                        column.description(), column.priority()});
  }
  resource.scale_spec_replicas_path = rules.scale_spec_replicas_path();
  resource.scale_status_replicas_path = rules.scale_status_replicas_path();
  resource.scale_label_selector_path = rules.scale_label_selector_path();
  if (rules.max_name_length() > 0) resource.max_name_length = rules.max_name_length();
  message.fields.push_back(
      OnlyValue("apiVersion", resource.ApiVersion(), "The API group and its version."));
  message.fields.push_back(OnlyValue("kind", resource.kind, "The kind of object."));
  message.fields.push_back(MetadataField());
  message.resource = std::move(resource);
}

schema::Field SchemaBuilder::BuildField(const pb::FieldDescriptor& descriptor) {
  schema::Field field;
  field.name = descriptor.json_name();
  field.description = CommentOf(descriptor);
  CopyRules(descriptor.options().GetExtension(api::field), field);
  if (descriptor.is_map()) {
    field.shape = schema::Shape::kMap;
    SetType(*descriptor.message_type()->map_value(), field);
  } else {
    if (descriptor.is_repeated()) field.shape = schema::Shape::kList;
    SetType(descriptor, field);
  }
  if (field.description.empty() && field.message != nullptr)
    field.description = field.message->description;
  if (field.description.empty() && field.enumeration != nullptr)
    field.description = field.enumeration->description;
  CheckField(descriptor, field);
  return field;
}

void SchemaBuilder::SetType(const pb::FieldDescriptor& descriptor, schema::Field& field) {
  switch (descriptor.type()) {
    case pb::FieldDescriptor::TYPE_BOOL:
      field.type = Type::kBool;
      return;
    case pb::FieldDescriptor::TYPE_INT32:
      field.type = Type::kInt32;
      return;
    case pb::FieldDescriptor::TYPE_INT64:
      field.type = Type::kInt64;
      return;
    case pb::FieldDescriptor::TYPE_DOUBLE:
      field.type = Type::kDouble;
      return;
    case pb::FieldDescriptor::TYPE_STRING:
      field.type = Type::kString;
      return;
    case pb::FieldDescriptor::TYPE_ENUM:
      field.type = Type::kEnum;
      field.enumeration = Build(*descriptor.enum_type());
      return;
    case pb::FieldDescriptor::TYPE_MESSAGE:
      break;
    default:
      errors_.push_back(fmt::format("{}: the API has no fields of type {}", descriptor.full_name(),
                                    descriptor.type_name()));
      return;
  }
  const std::string& name = descriptor.message_type()->full_name();
  if (name == "google.protobuf.Struct") {
    field.type = Type::kRaw;
  } else if (name == "google.protobuf.Timestamp") {
    field.type = Type::kTimestamp;
  } else {
    field.type = Type::kMessage;
    field.message = Build(*descriptor.message_type());
  }
}

void SchemaBuilder::CheckField(const pb::FieldDescriptor& descriptor, const schema::Field& field) {
  const auto fail = [&](std::string_view why) {
    errors_.push_back(fmt::format("{}: {}", descriptor.full_name(), why));
  };
  if (!field.default_json.empty() && !nlohmann::json::accept(field.default_json))
    fail("default_json is not JSON");
  if (!field.default_json.empty() && field.required)
    fail("a field with a default cannot be missing: drop `required`");
  if (!field.pattern.empty() && field.pattern_help.empty()) fail("a pattern needs pattern_help");
  if (const std::string wrong = schema::PatternError(field.pattern); !wrong.empty())
    fail("pattern: " + wrong);
  for (const std::string& key : field.list_map_keys) {
    const schema::Field* item =
        field.message == nullptr ? nullptr : schema::FindField(*field.message, key);
    if (item == nullptr || !item->required)
      fail(fmt::format("list_map_keys: '{}' is no required field of the items", key));
  }
  const bool message = field.type == Type::kMessage && field.shape == schema::Shape::kSingle;
  if (field.atomic && !message && field.list_map_keys.empty())
    fail("atomic is for messages and lists with list_map_keys; other lists are so anyway");
  for (const schema::RawField& raw : field.raw_fields) {
    if (field.type != Type::kRaw || !schema::ParsePath(raw.path).ok())
      fail("raw_fields are paths inside a Struct");
  }
}

void SchemaBuilder::CheckRulePaths(const pb::Descriptor& descriptor,
                                   const schema::Message& message) {
  for (const schema::Rule& rule : message.rules) {
    if (rule.paths.empty())
      errors_.push_back(fmt::format("{}: a rule without fields", descriptor.full_name()));
    for (const std::string& path : rule.paths) {
      const schema::Field* field = FieldAt(message, path);
      if (field == nullptr) {
        errors_.push_back(
            fmt::format("{}: a rule names {}, which does not exist", descriptor.full_name(), path));
      } else if (rule.kind == schema::RuleKind::kLessOrEqual && field->type != Type::kInt32 &&
                 field->type != Type::kInt64) {
        errors_.push_back(fmt::format("{}: less_or_equal compares integers, and {} is none",
                                      descriptor.full_name(), path));
      }
    }
  }
}

}  // namespace ringmaster::plugin

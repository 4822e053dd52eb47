#include "proto/plugin/cpp_table.h"

#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace ringmaster::plugin {
namespace {

using schema::Shape;
using schema::Type;

// A string literal. JSON's escapes are C++'s for all that occurs in comments and rules.
std::string Literal(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string Literals(const std::vector<std::string>& texts) {
  std::vector<std::string> literals;
  for (const std::string& text : texts) literals.push_back(Literal(text));
  return fmt::format("{{{}}}", fmt::join(literals, ", "));
}

// Collects `.name = value` for what differs from the struct's own default.
class Designated {
 public:
  void Add(std::string_view name, std::string_view value) {
    parts_.push_back(fmt::format(".{} = {}", name, value));
  }
  void Text(std::string_view name, const std::string& value) {
    if (!value.empty()) Add(name, Literal(value));
  }
  void Texts(std::string_view name, const std::vector<std::string>& values) {
    if (!values.empty()) Add(name, Literals(values));
  }
  void Flag(std::string_view name, bool value) {
    if (value) Add(name, "true");
  }
  template <typename T>
  void Number(std::string_view name, const std::optional<T>& value) {
    if (value) Add(name, fmt::format("{}", *value));
  }
  std::string Done() const { return fmt::format("{{{}}}", fmt::join(parts_, ", ")); }

 private:
  std::vector<std::string> parts_;
};

std::string_view TypeLiteral(Type type) {
  switch (type) {
    case Type::kBool:
      return "kBool";
    case Type::kInt32:
      return "kInt32";
    case Type::kInt64:
      return "kInt64";
    case Type::kDouble:
      return "kDouble";
    case Type::kString:
      return "kString";
    case Type::kTimestamp:
      return "kTimestamp";
    case Type::kEnum:
      return "kEnum";
    case Type::kMessage:
      return "kMessage";
    case Type::kRaw:
      return "kRaw";
  }
  return "";
}

std::string_view RuleLiteral(schema::RuleKind kind) {
  switch (kind) {
    case schema::RuleKind::kLessOrEqual:
      return "kLessOrEqual";
    case schema::RuleKind::kRequires:
      return "kRequires";
    case schema::RuleKind::kExactlyOne:
      return "kExactlyOne";
    case schema::RuleKind::kAtMostOne:
      return "kAtMostOne";
    case schema::RuleKind::kAtLeastOne:
      return "kAtLeastOne";
  }
  return "";
}

void AddBounds(const schema::Field& field, Designated& out) {
  out.Number("minimum", field.minimum);
  out.Number("maximum", field.maximum);
  out.Flag("exclusive_minimum", field.exclusive_minimum);
  out.Number("min_length", field.min_length);
  out.Number("max_length", field.max_length);
  out.Text("pattern", field.pattern);
  out.Text("pattern_help", field.pattern_help);
  out.Texts("allowed", field.allowed);
  out.Number("min_items", field.min_items);
  out.Number("max_items", field.max_items);
}

std::string FieldTable(const schema::Field& field) {
  Designated out;
  out.Text("name", field.name);
  out.Text("description", field.description);
  out.Add("type", fmt::format("schema::Type::{}", TypeLiteral(field.type)));
  if (field.shape == Shape::kList) out.Add("shape", "schema::Shape::kList");
  if (field.shape == Shape::kMap) out.Add("shape", "schema::Shape::kMap");
  if (field.message != nullptr)
    out.Add("message", fmt::format("&SchemaOf<{}>()", field.message->name));
  if (field.enumeration != nullptr)
    out.Add("enumeration", fmt::format("&{}Values()", field.enumeration->name));
  out.Flag("required", field.required);
  out.Text("default_json", field.default_json);
  AddBounds(field, out);
  out.Texts("list_map_keys", field.list_map_keys);
  out.Flag("immutable", field.immutable);
  out.Text("format", field.format);
  std::vector<std::string> raw;
  for (const schema::RawField& path : field.raw_fields)
    raw.push_back(fmt::format("{{{}}}", Literal(path.path)));
  if (!raw.empty()) out.Add("raw_fields", fmt::format("{{{}}}", fmt::join(raw, ", ")));
  return out.Done();
}

std::string ColumnTable(const schema::PrinterColumn& column) {
  Designated out;
  out.Text("name", column.name);
  out.Text("type", column.type);
  out.Text("json_path", column.json_path);
  out.Text("description", column.description);
  if (column.priority != 0) out.Add("priority", fmt::format("{}", column.priority));
  return out.Done();
}

std::string ResourceTable(const schema::Resource& resource) {
  Designated out;
  out.Text("group", resource.group);
  out.Text("version", resource.version);
  out.Text("kind", resource.kind);
  out.Text("plural", resource.plural);
  out.Text("singular", resource.singular);
  out.Texts("short_names", resource.short_names);
  out.Texts("categories", resource.categories);
  std::vector<std::string> columns;
  for (const auto& column : resource.printer_columns) columns.push_back(ColumnTable(column));
  out.Add("printer_columns", fmt::format("{{{}}}", fmt::join(columns, ", ")));
  out.Text("scale_spec_replicas_path", resource.scale_spec_replicas_path);
  out.Text("scale_status_replicas_path", resource.scale_status_replicas_path);
  out.Text("scale_label_selector_path", resource.scale_label_selector_path);
  out.Add("max_name_length", fmt::format("{}", resource.max_name_length));
  return fmt::format("schema::Resource{}", out.Done());
}

}  // namespace

std::string EnumTable(const schema::Enum& enumeration) {
  std::vector<std::string> values;
  for (const schema::EnumValue& value : enumeration.values) {
    values.push_back(
        fmt::format("          {{{}, {}}}", Literal(value.name), Literal(value.description)));
  }
  return fmt::format(
      "const schema::Enum& {0}Values() {{\n  static const schema::Enum table = {{\n      .name = "
      "\"{0}\",\n"
      "      .description = {1},\n      .values = {{\n{2}}},\n  }};\n  return table;\n}}\n\n",
      enumeration.name, Literal(enumeration.description), fmt::join(values, ",\n"));
}

std::string MessageTable(const schema::Message& message) {
  std::string fields, rules;
  for (const schema::Field& field : message.fields)
    fields += fmt::format("          {},\n", FieldTable(field));
  for (const schema::Rule& rule : message.rules) {
    rules += fmt::format("          {{.kind = schema::RuleKind::{}, .paths = {}, .mend = {}}},\n",
                         RuleLiteral(rule.kind), Literals(rule.paths), Literal(rule.mend));
  }
  const std::string resource =
      message.resource ? fmt::format("      .resource = {},\n", ResourceTable(*message.resource))
                       : "";
  return fmt::format(
      "template <>\nconst schema::Message& SchemaOf<{0}>() {{\n  static const schema::Message "
      "table = {{\n"
      "      .name = \"{0}\",\n      .description = {1},\n      .fields = {{\n{2}      }},\n      "
      ".rules = {{\n{3}      }},\n"
      "{4}  }};\n  return table;\n}}\n\n",
      message.name, Literal(message.description), fields, rules, resource);
}

}  // namespace ringmaster::plugin

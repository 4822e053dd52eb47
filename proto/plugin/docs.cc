#include "proto/plugin/docs.h"

#include <cctype>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "proto/schema/rules.h"

namespace ringmaster::plugin {
namespace {

using schema::Field;
using schema::Message;
using schema::Shape;
using schema::Type;

std::string Link(const std::string& name) {
  std::string anchor;
  for (const char c : name)
    anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("[{}](#{})", name, anchor);
}

// '|' ends a table's cell.
std::string Cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string ValueType(const Field& field) {
  switch (field.type) {
    case Type::kBool:
      return "boolean";
    case Type::kInt32:
    case Type::kInt64:
      return "integer";
    case Type::kDouble:
      return "number";
    case Type::kString:
      return "string";
    case Type::kTimestamp:
      return "time";
    case Type::kEnum:
      return Link(field.enumeration->name);
    case Type::kMessage:
      return Link(field.message->name);
    case Type::kRaw:
      return "object";
  }
  return "";
}

std::string TypeOf(const Field& field) {
  if (field.shape == Shape::kList) return "list of " + ValueType(field);
  if (field.shape == Shape::kMap) return "map of " + ValueType(field);
  return ValueType(field);
}

std::string NumberBounds(const Field& field) {
  std::vector<std::string> parts;
  if (field.minimum)
    parts.push_back(
        fmt::format("{} {}", field.exclusive_minimum ? "more than" : "at least", *field.minimum));
  if (field.maximum) parts.push_back(fmt::format("at most {}", *field.maximum));
  return fmt::format("{}", fmt::join(parts, ", "));
}

template <typename T>
std::string Range(const std::optional<T>& fewest, const std::optional<T>& most,
                  std::string_view unit) {
  if (fewest && most) return fmt::format("{} to {} {}", *fewest, *most, unit);
  if (fewest) return fmt::format("at least {} {}", *fewest, unit);
  return most ? fmt::format("at most {} {}", *most, unit) : "";
}

std::string RulesOf(const Field& field) {
  std::vector<std::string> parts;
  if (field.required) parts.emplace_back("required");
  parts.push_back(NumberBounds(field));
  parts.push_back(Range(field.min_length, field.max_length, "characters"));
  parts.push_back(field.pattern_help);
  if (!field.allowed.empty())
    parts.push_back(fmt::format("one of `{}`", fmt::join(field.allowed, "`, `")));
  parts.push_back(Range(field.min_items, field.max_items, "items"));
  if (!field.list_map_keys.empty() && !field.atomic)
    parts.push_back(fmt::format("unique by {}", fmt::join(field.list_map_keys, ", ")));
  if (field.immutable) parts.emplace_back("immutable");
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string Row(const Field& field) {
  const std::string preset =
      field.default_json.empty() ? "" : fmt::format("`{}`", field.default_json);
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", field.name, TypeOf(field), preset,
                     Cell(RulesOf(field)), Cell(field.description));
}

std::string EnumSection(const schema::Enum& enumeration) {
  std::string out = fmt::format("\n### {}\n\n", enumeration.name);
  if (!enumeration.description.empty()) out += enumeration.description + "\n\n";
  out += "| Value | Meaning |\n|---|---|\n";
  for (const schema::EnumValue& value : enumeration.values) {
    out += fmt::format("| `{}` | {} |\n", value.name, Cell(value.description));
  }
  return out;
}

class ReferenceWriter {
 public:
  std::string Write(const Message& kind) {
    Add(kind);
    return out_;
  }

 private:
  void Add(const Message& message) {
    if (!seen_.insert(message.name).second) return;
    out_ += fmt::format("\n## {}\n\n", message.name);
    if (!message.description.empty()) out_ += message.description + "\n\n";
    if (!message.fields.empty()) {
      out_ += "| Field | Type | Default | Rules | Description |\n|---|---|---|---|---|\n";
      for (const Field& field : message.fields) out_ += Row(field);
    }
    if (!message.rules.empty()) out_ += "\nRules:\n\n";
    for (const schema::Rule& rule : message.rules)
      out_ += fmt::format("- {}\n", schema::Demand(rule));
    for (const Field& field : message.fields) {
      if (field.message != nullptr) Add(*field.message);
      if (field.enumeration != nullptr && seen_.insert(field.enumeration->name).second) {
        out_ += EnumSection(*field.enumeration);
      }
    }
  }

  std::set<std::string> seen_;
  std::string out_;
};

std::string Columns(const schema::Resource& resource) {
  std::string out = "| Column | Shows |\n|---|---|\n";
  for (const schema::PrinterColumn& column : resource.printer_columns) {
    out += fmt::format("| {} | {} (`{}`) |\n", column.name, column.description, column.json_path);
  }
  return out;
}

}  // namespace

std::string Reference(const Message& kind) {
  const schema::Resource& resource = *kind.resource;
  std::string out = fmt::format(
      "<!-- Generated from proto/ by protoc-gen-ringmaster. Do not edit. -->\n# {} reference\n\n",
      resource.kind);
  out += fmt::format("`apiVersion: {}`, `kind: {}`; short name `{}`.\n\n", resource.ApiVersion(),
                     resource.kind, fmt::join(resource.short_names, "`, `"));
  out += fmt::format("`metadata.name` {}; it {}.\n\n", schema::kNameDemand,
                     schema::NameLengthDemand(resource));
  out += fmt::format("`kubectl get {}` shows:\n\n{}", resource.plural, Columns(resource));
  return out + ReferenceWriter().Write(kind);
}

}  // namespace ringmaster::plugin

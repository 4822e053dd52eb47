#include "proto/plugin/cel.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "proto/schema/check_value.h"
#include "proto/schema/path.h"
#include "proto/schema/rules.h"

namespace ringmaster::plugin {
namespace {

using Json = nlohmann::json;
using schema::Rule;
using schema::RuleKind;

// A CEL string literal.
std::string Literal(const std::string& text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "'";
}

// Absent fields have taken their defaults and required ones were checked before a rule is
// evaluated.
bool IsAlwaysThere(const schema::Field* field) {
  return field != nullptr && (field->required || !field->default_json.empty());
}

std::string Either(const std::string& unless_present, const std::string& then) {
  return unless_present == "true" ? then : fmt::format("!({}) || {}", unless_present, then);
}

std::string And(const std::string& a, const std::string& b) {
  if (a == "true") return b;
  return b == "true" ? a : fmt::format("{} && {}", a, b);
}

Json LessOrEqual(const Rule& rule, const schema::Message& message) {
  const std::string left = "self." + rule.paths[0];
  const std::string right = "self." + rule.paths[1];
  const std::string present =
      And(Presence(message, rule.paths[0]), Presence(message, rule.paths[1]));
  const schema::LessOrEqualText text = schema::TextOf(rule);
  return {{"rule", Either(present, fmt::format("{} <= {}", left, right))},
          {"message", schema::Demand(rule)},
          // format() and not '+': the API server takes the length of string(int) for unbounded and
          // refuses its cost.
          {"messageExpression",
           fmt::format("{}.format([{}, {}])", Literal("%d" + text.middle + "%d" + text.end), left,
                       right)},
          {"fieldPath", "." + rule.paths[0]}};
}

Json Requires(const Rule& rule, const schema::Message& message) {
  return {{"rule", Either(Presence(message, rule.paths[0]), Presence(message, rule.paths[1]))},
          {"message", schema::Demand(rule)},
          {"fieldPath", "." + rule.paths[0]}};
}

Json Choice(const Rule& rule, const schema::Message& message) {
  std::vector<std::string> terms;
  for (const std::string& path : rule.paths) {
    const std::string present = Presence(message, path);
    terms.push_back(rule.kind == RuleKind::kAtLeastOne ? fmt::format("({})", present)
                                                       : fmt::format("({} ? 1 : 0)", present));
  }
  std::string expression;
  if (rule.kind == RuleKind::kAtLeastOne) {
    expression = fmt::format("{}", fmt::join(terms, " || "));
  } else {
    expression = fmt::format("{} {} 1", fmt::join(terms, " + "),
                             rule.kind == RuleKind::kExactlyOne ? "==" : "<=");
  }
  return {{"rule", expression}, {"message", schema::Demand(rule)}};
}

Json Validation(const Rule& rule, const schema::Message& message) {
  switch (rule.kind) {
    case RuleKind::kLessOrEqual:
      return LessOrEqual(rule, message);
    case RuleKind::kRequires:
      return Requires(rule, message);
    default:
      return Choice(rule, message);
  }
}

void AddNameRules(const schema::Resource& resource, Json& validations) {
  validations.push_back(
      {{"rule", fmt::format("self.metadata.name.matches('^{}$')", schema::kNamePattern)},
       {"message", fmt::format("metadata.name {}", schema::kNameDemand)}});
  validations.push_back(
      {{"rule", fmt::format("size(self.metadata.name) <= {}", resource.max_name_length)},
       {"message", "metadata.name " + schema::NameLengthDemand(resource)}});
}

}  // namespace

std::string Presence(const schema::Message& message, const std::string& path) {
  const auto steps = schema::ParsePath(path);
  const schema::Message* inside = &message;
  std::string expression = "true";
  std::string at = "self";
  for (const schema::Step& step : *steps) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      const schema::Field* field = inside == nullptr ? nullptr : schema::FindField(*inside, *name);
      at = fmt::format("{}.{}", at, *name);
      if (!IsAlwaysThere(field)) expression = And(expression, fmt::format("has({})", at));
      inside = field == nullptr ? nullptr : field->message;
    } else {
      const std::size_t index = std::get<std::size_t>(step);
      expression = And(expression, fmt::format("size({}) > {}", at, index));
      at = fmt::format("{}[{}]", at, index);
    }
  }
  return expression;
}

Json MessageValidations(const schema::Message& message) {
  Json validations = Json::array();
  for (const Rule& rule : message.rules) validations.push_back(Validation(rule, message));
  for (const schema::Field& field : message.fields) {
    // The field's own rule does not run when the field goes.
    if (!field.immutable || IsAlwaysThere(&field)) continue;
    validations.push_back(
        {{"rule", fmt::format("!has(oldSelf.{0}) || has(self.{0})", field.name)},
         {"message", fmt::format("{} {}", field.name, schema::kImmutableDemand)}});
  }
  if (message.resource) AddNameRules(*message.resource, validations);
  return validations;
}

Json FieldValidations(const schema::Field& field) {
  Json validations = Json::array();
  if (field.immutable)
    validations.push_back({{"rule", "self == oldSelf"}, {"message", schema::kImmutableDemand}});
  return validations;
}

}  // namespace ringmaster::plugin

#include "proto/schema/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "proto/schema/path.h"

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

std::string WithMend(std::string sentence, const std::string& mend) {
  return mend.empty() ? sentence : fmt::format("{}; {}", sentence, mend);
}

std::string Choice(std::string_view verb, const Rule& rule) {
  return fmt::format("set {} one of {}", verb, fmt::join(rule.paths, ", "));
}

std::string DemandOnly(const Rule& rule) {
  switch (rule.kind) {
    case RuleKind::kLessOrEqual:
      return fmt::format("{} must not be more than {}", rule.paths[0], rule.paths[1]);
    case RuleKind::kRequires:
      return fmt::format("{} needs {}", rule.paths[0], rule.paths[1]);
    case RuleKind::kExactlyOne:
      return Choice("exactly", rule);
    case RuleKind::kAtMostOne:
      return Choice("at most", rule);
    case RuleKind::kAtLeastOne:
      return Choice("at least", rule);
  }
  return "";
}

// A path inside a message, made absolute: both may hold brackets, so this is no Join of one name.
std::string Absolute(std::string_view path, const std::string& inner) {
  return path.empty() ? inner : fmt::format("{}.{}", path, inner);
}

std::optional<Problem> EvaluateLessOrEqual(const Rule& rule, const Json& object,
                                           std::string_view path) {
  const Json* left = FindPath(object, rule.paths[0]);
  const Json* right = FindPath(object, rule.paths[1]);
  if (left == nullptr || right == nullptr || !left->is_number() || !right->is_number())
    return std::nullopt;
  if (*left <= *right) return std::nullopt;
  const LessOrEqualText text = TextOf(rule);
  return Problem{Absolute(path, rule.paths[0]),
                 left->dump() + text.middle + right->dump() + text.end};
}

std::optional<Problem> EvaluateRequires(const Rule& rule, const Json& object,
                                        std::string_view path) {
  if (FindPath(object, rule.paths[0]) == nullptr || FindPath(object, rule.paths[1]) != nullptr)
    return std::nullopt;
  return Problem{Absolute(path, rule.paths[0]), Demand(rule)};
}

std::optional<Problem> EvaluateChoice(const Rule& rule, const Json& object, std::string_view path) {
  std::vector<std::string> set;
  for (const std::string& candidate : rule.paths) {
    if (FindPath(object, candidate) != nullptr) set.push_back(candidate);
  }
  const bool too_few = set.empty() && rule.kind != RuleKind::kAtMostOne;
  const bool too_many = set.size() > 1 && rule.kind != RuleKind::kAtLeastOne;
  if (!too_few && !too_many) return std::nullopt;
  const std::string found =
      too_few ? "none is set" : fmt::format("{} are set", fmt::join(set, " and "));
  return Problem{std::string(path),
                 WithMend(fmt::format("{} ({})", DemandOnly(rule), found), rule.mend)};
}

}  // namespace

std::string Demand(const Rule& rule) {
  return WithMend(DemandOnly(rule), rule.mend);
}

LessOrEqualText TextOf(const Rule& less_or_equal) {
  return {fmt::format(" is more than {} (", less_or_equal.paths[1]),
          WithMend(")", less_or_equal.mend)};
}

std::optional<Problem> Evaluate(const Rule& rule, const Json& object, std::string_view path) {
  switch (rule.kind) {
    case RuleKind::kLessOrEqual:
      return EvaluateLessOrEqual(rule, object, path);
    case RuleKind::kRequires:
      return EvaluateRequires(rule, object, path);
    default:
      return EvaluateChoice(rule, object, path);
  }
}

std::string NameLengthDemand(const Resource& resource) {
  return fmt::format(
      "must be at most {} characters: its pods' names add an index and an incarnation",
      resource.max_name_length);
}

}  // namespace ringmaster::schema

#include "operator/kube/selector.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/names.h"
#include "operator/kube/object.h"

namespace ringmaster::kube {
namespace {

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Cuts at the commas that are outside parentheses; every piece is trimmed.
std::vector<std::string_view> SplitOutsideParentheses(std::string_view text) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      pieces.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return pieces;
}

absl::Status Malformed(std::string_view text, std::string_view why) {
  return BadRequest(fmt::format("label selector \"{}\": {}", text, why));
}

}  // namespace

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (std::string_view piece : SplitOutsideParentheses(text)) {
    RM_ASSIGN_OR_RETURN(Requirement requirement, ParseOne(piece));
    if (!ProblemWithLabelKey(requirement.key).empty()) {
      return Malformed(text, ProblemWithLabelKey(requirement.key));
    }
    for (const std::string& value : requirement.values) {
      const std::string problem = ProblemWithLabelValue(value);
      if (!problem.empty()) return Malformed(text, problem);
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

absl::StatusOr<LabelSelector::Requirement> LabelSelector::ParseOne(std::string_view text) {
  if (text.empty()) return Malformed(text, "a requirement is empty");
  if (const auto open = text.find('('); open != std::string_view::npos) return ParseSet(text, open);
  if (const auto not_equal = text.find("!="); not_equal != std::string_view::npos) {
    return Requirement{std::string(Trim(text.substr(0, not_equal))),
                       Operator::kNotIn,
                       {std::string(Trim(text.substr(not_equal + 2)))}};
  }
  if (const auto equal = text.find('='); equal != std::string_view::npos) {
    const std::size_t width = text.substr(equal, 2) == "==" ? 2 : 1;
    return Requirement{std::string(Trim(text.substr(0, equal))),
                       Operator::kIn,
                       {std::string(Trim(text.substr(equal + width)))}};
  }
  if (text.front() == '!')
    return Requirement{std::string(Trim(text.substr(1))), Operator::kAbsent, {}};
  return Requirement{std::string(text), Operator::kExists, {}};
}

absl::StatusOr<LabelSelector::Requirement> LabelSelector::ParseSet(std::string_view text,
                                                                   std::size_t open) {
  if (text.back() != ')') return Malformed(text, "expected ) at the end");
  const std::string_view head = Trim(text.substr(0, open));
  const auto space = head.find_last_of(" \t");
  if (space == std::string_view::npos)
    return Malformed(text, "expected `key in (...)` or `key notin (...)`");
  const std::string_view word = head.substr(space + 1);
  if (word != "in" && word != "notin") return Malformed(text, "expected `in` or `notin` before (");
  Requirement requirement{std::string(Trim(head.substr(0, space))),
                          word == "in" ? Operator::kIn : Operator::kNotIn,
                          {}};
  for (std::string_view value :
       SplitOutsideParentheses(text.substr(open + 1, text.size() - open - 2))) {
    requirement.values.emplace_back(value);
  }
  return requirement;
}

bool LabelSelector::Matches(const Json& object) const {
  return std::all_of(
      requirements_.begin(), requirements_.end(), [&](const Requirement& requirement) {
        const auto value = Label(object, requirement.key);
        const bool listed = value && std::find(requirement.values.begin(), requirement.values.end(),
                                               *value) != requirement.values.end();
        switch (requirement.op) {
          case Operator::kExists:
            return value.has_value();
          case Operator::kAbsent:
            return !value.has_value();
          case Operator::kIn:
            return listed;
          case Operator::kNotIn:
            break;
        }
        return !listed;
      });
}

std::string LabelEquals(std::string_view key, std::string_view value) {
  return fmt::format("{}={}", key, value);
}

}  // namespace ringmaster::kube

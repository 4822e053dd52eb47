#include "operator/kube/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringmaster::kube {
namespace {

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsLowerAlphanumeric(char c) {
  return IsLower(c) || IsDigit(c);
}
bool IsAlphanumeric(char c) {
  return IsLowerAlphanumeric(c) || (c >= 'A' && c <= 'Z');
}

constexpr std::size_t kLabelLength = 63;
constexpr std::size_t kSubdomainLength = 253;

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool IsDnsLabelText(std::string_view text) {
  return !text.empty() && IsLowerAlphanumeric(text.front()) && IsLowerAlphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerAlphanumeric(c) || c == '-'; });
}

// [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsQualifiedText(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string ProblemWithLength(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return "";
  return fmt::format("\"{}\" has {} characters, at most {} are allowed", text, text.size(), limit);
}

}  // namespace

std::string ProblemWithDnsLabel(std::string_view text) {
  if (std::string problem = ProblemWithLength(text, kLabelLength); !problem.empty()) return problem;
  if (IsDnsLabelText(text)) return "";
  return fmt::format("\"{}\" must consist of a-z, 0-9 and '-', with a letter or digit at both ends",
                     text);
}

std::string ProblemWithDnsSubdomain(std::string_view text) {
  if (std::string problem = ProblemWithLength(text, kSubdomainLength); !problem.empty())
    return problem;
  std::string_view rest = text;
  while (true) {
    const auto dot = rest.find('.');
    if (!IsDnsLabelText(rest.substr(0, dot))) break;
    if (dot == std::string_view::npos) return "";
    rest.remove_prefix(dot + 1);
  }
  return fmt::format(
      "\"{}\" must consist of a-z, 0-9, '-' and '.', with a letter or digit at both ends", text);
}

std::string ProblemWithServiceName(std::string_view text) {
  if (std::string problem = ProblemWithDnsLabel(text); !problem.empty()) return problem;
  if (IsLower(text.front())) return "";
  return fmt::format("\"{}\" must begin with a letter", text);
}

std::string ProblemWithLabelKey(std::string_view text) {
  std::string_view name = text;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    if (std::string problem = ProblemWithDnsSubdomain(text.substr(0, slash)); !problem.empty())
      return problem;
    name = text.substr(slash + 1);
  }
  if (std::string problem = ProblemWithLength(name, kLabelLength); !problem.empty()) return problem;
  if (IsQualifiedText(name)) return "";
  return fmt::format("\"{}\" must be [prefix/]name of letters, digits, '-', '_' and '.'", text);
}

std::string ProblemWithLabelValue(std::string_view text) {
  if (text.empty()) return "";
  if (std::string problem = ProblemWithLength(text, kLabelLength); !problem.empty()) return problem;
  if (IsQualifiedText(text)) return "";
  return fmt::format(
      "\"{}\" must consist of letters, digits, '-', '_' and '.', with a letter or digit at both "
      "ends",
      text);
}

}  // namespace ringmaster::kube

#include "cli/pod_name.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

// The number that a text begins with, taken off it; nothing where it does not begin with a digit.
std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(parsed.ptr - text.data());
  return number;
}

int LabelNumber(const nlohmann::json& pod, std::string_view label) {
  const std::string text = kube::Label(pod, label).value_or("");
  std::string_view rest = text;
  const auto number = TakeNumber(rest);
  return number && rest.empty() ? *number : -1;
}

}  // namespace

std::optional<std::pair<int, int>> ParsePodName(std::string_view name, std::string_view job) {
  if (!name.starts_with(job)) return std::nullopt;
  name.remove_prefix(job.size());
  if (!name.starts_with('-')) return std::nullopt;
  name.remove_prefix(1);
  const auto index = TakeNumber(name);
  if (!index || !name.starts_with('-')) return std::nullopt;
  name.remove_prefix(1);
  const auto incarnation = TakeNumber(name);
  if (!incarnation || !name.empty()) return std::nullopt;
  return std::pair(*index, *incarnation);
}

int IndexOf(const nlohmann::json& pod) {
  return LabelNumber(pod, contract::kLabelIndex);
}

int IncarnationOf(const nlohmann::json& pod) {
  return LabelNumber(pod, contract::kLabelIncarnation);
}

}  // namespace ringmaster::cli

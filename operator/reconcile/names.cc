#include "operator/reconcile/names.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/contract.h"

namespace ringmaster::reconcile {

std::string PodName(const std::string& job, int index, int incarnation) {
  return fmt::format("{}-{}-{}", job, index, incarnation);
}

std::string Selector(const std::string& job) {
  return fmt::format("{}={}", contract::kLabelJob, job);
}

std::string NameList(const std::vector<std::string>& names, std::size_t limit) {
  const std::size_t shown = std::min(names.size(), limit);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace ringmaster::reconcile

#include "runtime/optim/segments.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/status.h"
#include "common/text.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::optim {
namespace {

using training::v1alpha1::ParameterGroup;
using training::v1alpha1::ParameterRole;

bool Has(ParameterRole role, std::string_view name) {
  if (role == ParameterRole::kBias) return name.ends_with(".bias");
  return name.ends_with(".gamma") || name.ends_with(".beta");
}

bool Belongs(const ParameterRange& parameter, const ParameterGroup& group) {
  return std::any_of(group.names.begin(), group.names.end(),
                     [&](const auto& pattern) { return Matches(pattern, parameter.name); }) ||
         std::any_of(group.roles.begin(), group.roles.end(),
                     [&](ParameterRole role) { return Has(role, parameter.name); });
}

absl::Status CheckGroups(const std::vector<ParameterGroup>& groups,
                         std::span<const ParameterRange> parameters) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const bool used = std::any_of(parameters.begin(), parameters.end(),
                                  [&](const ParameterRange& p) { return Belongs(p, groups[i]); });
    if (used) continue;
    constexpr size_t kShown = 12;
    std::vector<std::string_view> names;
    for (const auto& parameter : parameters.first(std::min(parameters.size(), kShown)))
      names.push_back(parameter.name);
    return absl::InvalidArgumentError(fmt::format(
        "optimizer.groups[{}]: no parameter of the network belongs to it; there are {}{}", i,
        fmt::join(names, ", "), parameters.size() > kShown ? ", ..." : ""));
  }
  return absl::OkStatus();
}

Segment SegmentOf(const ParameterRange& parameter, const std::vector<ParameterGroup>& groups) {
  Segment segment{.begin = parameter.offset, .end = parameter.offset + parameter.size};
  const auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& g) { return Belongs(parameter, g); });
  if (group == groups.end()) return segment;
  segment.rate_factor = group->learning_rate_factor;
  segment.decay_factor = group->weight_decay_factor;
  segment.layer_wise = group->layer_wise;
  return segment;
}

bool LearnAlike(const Segment& a, const Segment& b) {
  return a.rate_factor == b.rate_factor && a.decay_factor == b.decay_factor;
}

}  // namespace

absl::StatusOr<std::vector<Segment>> MakeSegments(const training::v1alpha1::Optimizer& config,
                                                  size_t size,
                                                  std::span<const ParameterRange> parameters,
                                                  Cut cut) {
  RM_RETURN_IF_ERROR(CheckGroups(config.groups, parameters));
  if (parameters.empty() || (config.groups.empty() && cut == Cut::kWhereGroupsDiffer))
    return std::vector<Segment>{{.begin = 0, .end = size}};
  std::vector<Segment> segments;
  for (const ParameterRange& parameter : parameters) {
    const Segment next = SegmentOf(parameter, config.groups);
    const bool goes_on = cut == Cut::kWhereGroupsDiffer && !segments.empty() &&
                         LearnAlike(segments.back(), next) && segments.back().end <= next.begin;
    if (goes_on) {
      segments.back().end = next.end;
    } else {
      segments.push_back(next);
    }
  }
  return segments;
}

}  // namespace ringmaster::optim

#include "runtime/train/parts.h"

#include <utility>

#include <fmt/format.h>

namespace ringmaster::train {
namespace {

template <typename Function>
void AddPart(const char* kind, const std::string& name, Function function,
             std::map<std::string, Function>& parts, absl::Status& status) {
  std::string problem;
  if (name.empty()) problem = "needs a name";
  if (!function) problem = "has no function";
  if (parts.contains(name)) problem = "is registered twice";
  if (problem.empty()) {
    parts.emplace(name, std::move(function));
  } else {
    status.Update(absl::InvalidArgumentError(fmt::format("{} \"{}\" {}", kind, name, problem)));
  }
}

}  // namespace

void Parts::AddNetwork(const std::string& name, NetworkFunction build) {
  AddPart("network", name, std::move(build), networks_, status_);
}

void Parts::AddDataset(const std::string& name, DatasetFunction load) {
  AddPart("data set", name, std::move(load), datasets_, status_);
}

void Parts::AddOptimizer(const std::string& name, OptimizerFunction make) {
  AddPart("optimizer", name, std::move(make), optimizers_, status_);
}

}  // namespace ringmaster::train

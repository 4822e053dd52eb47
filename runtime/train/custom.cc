#include "runtime/train/custom.h"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/sample_check.h"

namespace ringmaster::train {
namespace {

// The function of that name, with a text that names the part in messages.
template <typename Function>
struct Found {
  const Function& function;
  std::string name;  // "network \"tiny\""
};

template <typename Function>
absl::StatusOr<Found<Function>> Find(const std::map<std::string, Function>& parts, const char* kind,
                                     const std::string& name) {
  const auto found = parts.find(name);
  if (found != parts.end())
    return Found<Function>{found->second, fmt::format("{} \"{}\"", kind, name)};
  std::string known;
  for (const auto& [other, function] : parts) known += (known.empty() ? "" : ", ") + other;
  return absl::InvalidArgumentError(
      fmt::format("this trainer knows no {} \"{}\"; it knows {}", kind, name,
                  known.empty() ? "none: is spec.trainer.program the one that you mean?" : known));
}

Settings SettingsOf(const char* part, const nlohmann::json& settings) {
  return Settings(fmt::format("spec.trainer.{}.custom.settings", part),
                  settings.is_null() ? "" : settings.dump());
}

// What a part throws is an error of that part. Memory that is out is everybody's.
template <typename Call>
absl::Status Guarded(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(fmt::format("threw: {}", error.what()));
  } catch (...) {
    return absl::InvalidArgumentError("threw something that is no std::exception");
  }
}

// "fc.weight [10, 64]", or "none" past the end.
template <typename Entry>
std::string NameOf(const std::vector<Entry>& entries, size_t place) {
  if (place >= entries.size()) return "none";
  return fmt::format("{} {}", entries[place].name, entries[place].shape.ToString());
}

template <typename Entry>
absl::Status CheckSame(const char* what, const std::vector<Entry>& entries,
                       const std::vector<Entry>& others) {
  const size_t most = std::max(entries.size(), others.size());
  for (size_t i = 0; i < most; ++i) {
    if (i < entries.size() && i < others.size() && entries[i] == others[i]) continue;
    return absl::InvalidArgumentError(fmt::format(
        "its {} depend on the mode or on the batch: {} {} is {} and then {}; declare the same in "
        "the same order, whatever b.options() says of these",
        what, what, i, NameOf(entries, i), NameOf(others, i)));
  }
  return absl::OkStatus();
}

absl::Status CheckState(const std::vector<optim::StateBuffer>& buffers, size_t size) {
  std::set<std::string> names;
  for (const optim::StateBuffer& buffer : buffers) {
    if (buffer.name.empty() || !names.insert(buffer.name).second) {
      return absl::InvalidArgumentError(
          fmt::format("its state buffer \"{}\" needs a name of its own", buffer.name));
    }
    if (buffer.values.size() != size) {
      return absl::InvalidArgumentError(
          fmt::format("its state buffer \"{}\" has {} floats, not the {} of the weights",
                      buffer.name, buffer.values.size(), size));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<nn::Model> BuildCustom(const Parts& parts, const training::v1alpha1::Custom& config,
                                      const nn::BuildOptions& options) {
  RM_ASSIGN_OR_RETURN(const auto network, Find(parts.networks(), "network", config.name));
  Settings settings = SettingsOf("model", config.settings);
  nn::ModelBuilder builder(options);
  const nn::ValueId inputs = builder.Inputs();
  nn::ValueId logits;
  const absl::Status status = Guarded([&] {
    logits = network.function(builder, settings, inputs);
    // A setting may matter in training alone.
    return options.mode == nn::Mode::kTraining ? settings.Finish() : settings.status();
  });
  if (!status.ok()) return Annotate(status, network.name);
  absl::StatusOr<nn::Model> model = std::move(builder).Finish(config.name, inputs, logits);
  if (!model.ok()) return Annotate(model.status(), network.name);
  return model;
}

absl::Status CheckSameLayout(const nn::Model& model, const nn::Model& other) {
  absl::Status status = CheckSame("parameters", model.parameters, other.parameters);
  status.Update(CheckSame("running statistics", model.states, other.states));
  return Annotate(status, fmt::format("network \"{}\"", model.name));
}

absl::StatusOr<data::Splits> LoadCustom(const Parts& parts,
                                        const training::v1alpha1::Custom& config,
                                        const std::string& workspace) {
  RM_ASSIGN_OR_RETURN(const auto dataset, Find(parts.datasets(), "data set", config.name));
  Settings settings = SettingsOf("data", config.settings);
  data::Splits splits;
  const absl::Status status = Guarded([&]() -> absl::Status {
    absl::StatusOr<data::Splits> made = dataset.function(settings, workspace);
    RM_RETURN_IF_ERROR(settings.status());
    RM_RETURN_IF_ERROR(made.status());
    RM_RETURN_IF_ERROR(settings.Finish());
    splits = *std::move(made);
    return data::CheckSplits(splits);
  });
  if (!status.ok()) return Annotate(status, dataset.name);
  return splits;
}

absl::StatusOr<std::unique_ptr<optim::Optimizer>> MakeCustom(
    const Parts& parts, const training::v1alpha1::CustomOptimizer& config,
    const OptimizerSetup& setup) {
  RM_ASSIGN_OR_RETURN(const auto optimizer, Find(parts.optimizers(), "optimizer", config.name));
  Settings settings = SettingsOf("optimizer", config.settings);
  std::unique_ptr<optim::Optimizer> result;
  const absl::Status status = Guarded([&]() -> absl::Status {
    auto made = optimizer.function(settings, setup);
    RM_RETURN_IF_ERROR(settings.status());
    RM_RETURN_IF_ERROR(made.status());
    RM_RETURN_IF_ERROR(settings.Finish());
    if (*made == nullptr) return absl::InvalidArgumentError("its function gave none");
    result = *std::move(made);
    return CheckState(result->state(), setup.size);
  });
  if (!status.ok()) return Annotate(status, optimizer.name);
  return result;
}

}  // namespace ringmaster::train

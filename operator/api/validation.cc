#include "operator/api/validation.h"

#include <string>

#include <fmt/format.h>

#include "operator/api/defaults.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's
using Problems = std::vector<schema::Problem>;

constexpr char kCommandPath[] = "containers[0].command";

void CheckProgram(const TrainingJobSpec& spec, Problems& problems) {
  const auto* command = schema::FindPath(spec.workers.template_, "spec.containers[0].command");
  if (command != nullptr && command->empty()) {
    problems.push_back({fmt::format("spec.workers.template.spec.{}", kCommandPath),
                        "is empty: it must name a program"});
  }
  const bool native = spec.launch->mode == LaunchMode::kNative;
  if (native && !spec.trainer) {
    problems.push_back(
        {"spec.launch.mode",
         "Native runs spec.trainer, which is missing; use Exec, Torch or MPI for a command"});
  }
  if (!native && spec.trainer) {
    problems.push_back(
        {"spec.launch.mode",
         fmt::format("{} starts a program of your own, but spec.trainer is set; drop launch",
                     nlohmann::json(ToJson(spec.launch->mode)).get<std::string>())});
  }
}

void CheckShards(const TrainingJobSpec& spec, Problems& problems) {
  const Batch& batch = spec.trainer->batch;
  const std::int32_t max_replicas = *spec.workers.max_replicas;
  if (batch.size < max_replicas) {
    problems.push_back({"spec.trainer.batch.size",
                        fmt::format("{} is less than the {} workers that the job may have; "
                                    "raise it or lower maxReplicas",
                                    batch.size, max_replicas)});
    return;
  }
  const std::int32_t shards = *batch.shards;
  if (shards == 0) return;
  if (shards > batch.size) {
    problems.push_back(
        {"spec.trainer.batch.shards",
         fmt::format("{} is more than batch.size ({}); a shard holds at least one sample", shards,
                     batch.size)});
  }
  if (shards < max_replicas) {
    problems.push_back(
        {"spec.trainer.batch.shards", fmt::format("{} is less than the {} workers that the job may "
                                                  "have; raise it, lower maxReplicas, or "
                                                  "write 0 for the plain ring",
                                                  shards, max_replicas)});
  }
}

void CheckKeepBest(const TrainingJobSpec& spec, Problems& problems) {
  if (!spec.checkpoint.keep_best.value_or(false)) return;
  const std::string why = spec.trainer
                              ? WhyNeverEvaluated(*spec.trainer)
                              : "goes by the evaluations of spec.trainer, which is missing";
  if (!why.empty()) problems.push_back({"spec.checkpoint.keepBest", why});
}

}  // namespace

std::vector<schema::Problem> Validate(const TrainingJob& job) {
  TrainingJobSpec spec = job.spec;
  ApplyDerivedDefaults(spec);
  Problems problems = ValidateTemplate(spec.workers.template_);
  CheckProgram(spec, problems);
  CheckKeepBest(spec, problems);
  if (spec.trainer) {
    CheckShards(spec, problems);
    for (schema::Problem& problem : ValidateTrainer(*spec.trainer))
      problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace ringmaster::api

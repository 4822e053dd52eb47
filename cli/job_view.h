// From the API's objects and the rendezvous' memory to what is shown (view.h).
#ifndef RINGMASTER_CLI_JOB_VIEW_H_
#define RINGMASTER_CLI_JOB_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/view.h"
#include "operator/kube/types.h"
#include "operator/reconcile/worker_view.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::cli {

// Pure. `job` has its derived defaults; `pods` are the job's, ended ones included.
JobView ViewOf(const std::string& name, const training::v1alpha1::TrainingJob& job,
               const std::vector<kube::ObjectPtr>& pods, const reconcile::WorkersView& workers);

// What a job's data is judged by beside accuracy, by its last evaluation: "perplexity 7.83". Empty
// without one, absent where accuracy says it all.
std::optional<std::string> MeasureOf(
    const training::v1alpha1::TrainerConfig& trainer,
    const std::optional<training::v1alpha1::EvaluationResult>& evaluation);

// How a pod ended, for people: "killed (SIGKILL)", "exit code 3". Empty while it has not.
std::string HowItEnded(const kube::Json& pod);

// When an event was last told; events are shown in this order. They carry whole seconds: those of
// one second are told apart by the store's count of writes.
using Moment = std::pair<std::string, std::uint64_t>;
Moment MomentOf(const kube::Json& event);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_JOB_VIEW_H_

#include "runtime/train/step_trace.h"

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::train {
namespace {

absl::Status TakeSteps(LoneWorker& worker, int steps, collectives::Timeline& timeline) {
  const collectives::TimelineTrack track(&timeline, "step");
  for (int i = 0; i < steps; ++i) RM_RETURN_IF_ERROR(worker.Step());
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTrace(LoneWorker& worker, const TraceOptions& options) {
  RM_ASSIGN_OR_RETURN(const auto timeline,
                      collectives::Timeline::Open(std::filesystem::absolute(options.file), 0,
                                                  options.title, {.from_epoch = false}));
  graph::Profile profile;
  profile.listener = [&](const graph::OpProfile& op, graph::Profile::Time begin,
                         graph::Profile::Time end) {
    timeline->Add(op.backward ? "backward" : "forward", op.node, begin, end,
                  fmt::format("{} by {}", op.op, op.implementation));
  };
  worker.SetProfile(&profile);
  const absl::Status stepped = TakeSteps(worker, options.steps, *timeline);
  worker.SetProfile(nullptr);
  RM_RETURN_IF_ERROR(stepped);
  return Annotate(timeline->Finish(), options.file);
}

}  // namespace ringmaster::train

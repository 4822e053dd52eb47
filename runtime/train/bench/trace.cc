#include "runtime/train/bench/trace.h"

#include <filesystem>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/collectives/timeline.h"
#include "runtime/graph/autodiff.h"

namespace ringmaster::train::bench {

absl::Status WriteTrace(Trial& trial, const Options& options) {
  RM_ASSIGN_OR_RETURN(
      const auto timeline,
      collectives::Timeline::Open(std::filesystem::absolute(options.trace), 0,
                                  fmt::format("{}, batch {}", options.model, options.batch),
                                  {.from_epoch = false}));
  graph::Profile profile;
  trial.SetProfile(&profile);
  absl::Status stepped;
  {
    const collectives::TimelineTrack track(timeline.get(), "step");
    stepped = trial.Step().status();
  }
  trial.SetProfile(nullptr);
  RM_RETURN_IF_ERROR(stepped);
  const char* track = "forward";
  for (const graph::OpProfile& op : profile.ops) {
    if (op.node == graph::kGradientSeed) track = "backward";
    timeline->Add(track, op.node, op.begin, op.begin + op.time,
                  fmt::format("{} by {}", op.op, op.implementation));
  }
  return Annotate(timeline->Finish(), options.trace);
}

}  // namespace ringmaster::train::bench

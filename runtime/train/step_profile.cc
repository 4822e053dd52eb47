#include "runtime/train/step_profile.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"

namespace ringmaster::train {
namespace {

using graph::OpProfile;

constexpr int64_t kLeastSteps = 5;
constexpr int64_t kFewestSteps = 2;
constexpr double kTedious = 20;  // seconds

class TableWriter {
 public:
  explicit TableWriter(const StepProfile& profile)
      : profile_(profile), total_(profile.times.all()) {
    for (const OpProfile& op : profile.ops) {
      op_width_ = std::max(op_width_, op.op.size());
      node_width_ = std::max(node_width_, op.node.size());
    }
  }

  std::string Write() {
    text_ = fmt::format("{:>10}  {:>7}  {:>5}  {}\n", "time", "share", "calls",
                        Columns("op", "node", "kernel"));
    AddPass("forward", false);
    AddPass("backward", true);
    text_ += "beside the ops\n";
    AddLine(profile_.SecondsBesideOps(), "", kBesideOps);
    AddLine(profile_.times.reduce_seconds, "", kSumOverWorkers);
    AddLine(profile_.times.commit_seconds, "", kOptimizer);
    return std::move(text_);
  }

 private:
  std::string Columns(const std::string& op, const std::string& node,
                      const std::string& kernel) const {
    return fmt::format("{:<{}}  {:<{}}  {}", op, op_width_, node, node_width_, kernel);
  }

  void AddLine(double seconds, const std::string& calls, const std::string& what) {
    text_ += fmt::format("{:>10}  {:>5.1f} %  {:>5}  {}\n", WithTimeUnit(seconds),
                         100 * seconds / total_, calls, what);
  }

  void AddPass(const std::string& name, bool backward) {
    std::vector<const OpProfile*> ops;
    double seconds = 0;
    for (const OpProfile& op : profile_.ops) {
      if (op.backward != backward) continue;
      ops.push_back(&op);
      seconds += profile_.SecondsOf(op);
    }
    std::ranges::stable_sort(ops, std::ranges::greater(), &OpProfile::time);
    text_ += name + "\n";
    for (const OpProfile* op : ops) {
      AddLine(profile_.SecondsOf(*op), fmt::format("{}", op->calls / profile_.steps),
              Columns(op->op, op->node, op->implementation));
    }
    AddLine(seconds, "", "all of it");
  }

  const StepProfile& profile_;
  const double total_;
  size_t op_width_ = 2, node_width_ = 4;  // of the headings at least
  std::string text_;
};

// Without the ops.
absl::StatusOr<StepProfile> TakeSteps(LoneWorker& worker, double seconds) {
  int64_t steps = 0;
  StepTimes sum;
  while (WantsAnotherStep(steps, sum.all(), seconds)) {
    RM_ASSIGN_OR_RETURN(const StepTimes step, worker.StepInParts());
    ++steps;
    sum.compute_seconds += step.compute_seconds;
    sum.reduce_seconds += step.reduce_seconds;
    sum.commit_seconds += step.commit_seconds;
  }
  const auto count = static_cast<double>(steps);
  return StepProfile{.steps = steps,
                     .times = {.compute_seconds = sum.compute_seconds / count,
                               .reduce_seconds = sum.reduce_seconds / count,
                               .commit_seconds = sum.commit_seconds / count}};
}

}  // namespace

double StepProfile::SecondsOf(const OpProfile& op) const {
  return std::chrono::duration<double>(op.time).count() / static_cast<double>(steps);
}

double StepProfile::SecondsBesideOps() const {
  double seconds = times.compute_seconds;
  for (const OpProfile& op : ops) seconds -= SecondsOf(op);
  return std::max(0.0, seconds);
}

bool WantsAnotherStep(int64_t steps, double taken, double seconds) {
  return steps < kFewestSteps || taken < seconds || (steps < kLeastSteps && taken < kTedious);
}

absl::StatusOr<StepProfile> TakeProfile(LoneWorker& worker, double seconds) {
  graph::Profile ops;
  worker.SetProfile(&ops);
  auto profile = TakeSteps(worker, seconds);
  worker.SetProfile(nullptr);
  if (!profile.ok()) return profile;
  // What shards wait for is computed by whoever adds it up.
  std::erase_if(ops.ops, [](const OpProfile& op) { return op.calls == 0; });
  profile->ops = std::move(ops.ops);
  return profile;
}

std::string Table(const StepProfile& profile) {
  return TableWriter(profile).Write();
}

}  // namespace ringmaster::train

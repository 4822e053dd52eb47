#include "operator/reconcile/kernels.h"

#include <algorithm>

#include <fmt/format.h>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

std::string DigestOf(const Slot& slot) {
  return slot.view != nullptr && slot.view->ready ? slot.view->ready->kernels_digest : "";
}

// The job's kernels: before its first round, those of worker 0. "" while they are not known.
std::string DigestOfJob(const Pass& pass) {
  if (pass.status.kernels_digest) return *pass.status.kernels_digest;
  return pass.slots.empty() ? "" : DigestOf(pass.slots.front());
}

bool HasErrorFeedback(const Pass& pass) {
  if (!pass.Native()) return false;
  const v1::Gradients& gradients = pass.spec.trainer->gradients;
  return gradients.top_k || gradients.one_bit;
}

// The plain ring's bits change with the number of workers anyway, and those of a sum with error
// feedback with whatever happens to one of them.
bool Promised(const Pass& pass) {
  return pass.Native() && !HasErrorFeedback(pass) &&
         pass.status.shards.value_or(pass.spec.trainer->batch.shards.value_or(0)) > 0;
}

bool Differs(const Pass& pass, const Slot& slot) {
  const std::string own = DigestOf(slot);
  const std::string wanted = DigestOfJob(pass);
  return !own.empty() && !wanted.empty() && own != wanted;
}

std::string Short(const std::string& digest) {
  return digest.substr(0, 12);
}

// "runs other kernels (sha256:1f..) than the job's first round (sha256:2e..)"
std::string Difference(const Pass& pass, const Slot& slot) {
  return fmt::format("runs other kernels (sha256:{}) than {} (sha256:{})", Short(DigestOf(slot)),
                     pass.status.kernels_digest ? "the job's first round" : "worker 0",
                     Short(DigestOfJob(pass)));
}

void Say(Pass& pass, bool same, const char* reason, const std::string& text) {
  const v1::Condition* before = FindCondition(pass.status, kConditionSameBits);
  if (before != nullptr && before->message == text) return;
  SetCondition(pass, kConditionSameBits, same, reason, text);
  if (!same) pass.Note(true, reason, text);
}

}  // namespace

bool RefusedForKernels(const Pass& pass, const Slot& slot) {
  return pass.spec.same_bits && Promised(pass) && Differs(pass, slot);
}

Verdict KernelsVerdict(const Pass& pass, const Slot& slot) {
  return {.cause = Cause::kHardware,
          .what = Difference(pass, slot) + " and is refused: its bits would differ"};
}

void FixKernels(Pass& pass) {
  if (!Promised(pass) || pass.status.kernels_digest) return;
  const std::string digest = DigestOfJob(pass);
  if (digest.empty()) return;
  pass.status.kernels_digest = digest;
  ApplyKernels(pass);
}

void ApplyKernels(Pass& pass) {
  if (HasErrorFeedback(pass)) {
    // The job's own wish: no event.
    SetCondition(pass, kConditionSameBits, false, kReasonErrorFeedback,
                 "Gradients travel with error feedback (spec.trainer.gradients): what a worker has "
                 "not sent is its own and ends with its round, so the weights depend on the "
                 "workers.");
    return;
  }
  if (!Promised(pass) || pass.status.result) return;
  const auto other = std::find_if(pass.slots.begin(), pass.slots.end(),
                                  [&](const Slot& slot) { return Differs(pass, slot); });
  if (other != pass.slots.end()) {
    const std::string who = fmt::format("Worker {} ({}) ", other->index, other->pod->name);
    Say(pass, false, kReasonOtherKernels,
        who + Difference(pass, *other) +
            (pass.spec.same_bits ? ": it is refused. Put the workers on machines of one kind with "
                                   "one image, or set spec.sameBits to false to take it."
                                 : ": spec.sameBits is false, so it is taken, and the weights "
                                   "depend on which worker computes what."));
    return;
  }
  const bool all = std::all_of(pass.slots.begin(), pass.slots.end(),
                               [&](const Slot& slot) { return !DigestOf(slot).empty(); });
  if (all && pass.status.kernels_digest) {
    Say(pass, true, kReasonSameKernels,
        fmt::format("All workers run the kernels of the job's first round (sha256:{}).",
                    Short(*pass.status.kernels_digest)));
  }
}

}  // namespace ringmaster::reconcile

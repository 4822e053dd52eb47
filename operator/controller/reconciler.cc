#include "operator/controller/reconciler.h"

namespace ringmaster::controller {

ReconcileResult RetryIfError(absl::Status status) {
  if (status.ok()) return Done{};
  return Retry{std::move(status)};
}

std::string_view ResultLabel(const ReconcileResult& result) {
  struct Labels {
    std::string_view operator()(const Done&) const { return "done"; }
    std::string_view operator()(const RequeueAfter&) const { return "requeue_after"; }
    std::string_view operator()(const Retry&) const { return "retry"; }
    std::string_view operator()(const Terminal&) const { return "terminal"; }
  };
  return std::visit(Labels{}, result);
}

}  // namespace ringmaster::controller

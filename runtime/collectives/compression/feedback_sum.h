// Sums in which each rank sends little of its vector and keeps what it did not send, its residual,
// for the next step: error feedback (Seide et al., 2014; Karimireddy et al., 2019), without which
// such sums do not converge.
//
// What a rank sends depends on all that it had before, so the result depends on the number of ranks
// and on who computed what. Every rank gets the same bits.
//
//   TopKSum sum(gradient.size(), 0.01);
//   RM_RETURN_IF_ERROR(sum.Reduce(*communicator, gradient, total, "gradients"));
//   sum.Commit();  // the step counts; without it the residual stays what it was
//
// Not thread-safe. Reduce is a collective operation of the communicator and blocks as those do.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_FEEDBACK_SUM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_FEEDBACK_SUM_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace ringmaster::collectives {

class Communicator;

class FeedbackSum {
 public:
  explicit FeedbackSum(size_t elements) : residual_(elements), rest_(elements) {}
  virtual ~FeedbackSum() = default;

  // out = the sum over the ranks of what each sends of `values` plus its residual. Every rank calls
  // it, with as many values; `out` has as many and holds the sum only after OK. `values` are only
  // read. What is not finite is always sent.
  absl::Status Reduce(Communicator& communicator, std::span<const float> values,
                      std::span<float> out, std::string_view name);

  // Takes what the last Reduce did not send as the residual.
  void Commit() { residual_.swap(rest_); }

  std::span<const float> residual() const { return residual_; }

  // What it keeps, from its first sum on, but for what travels.
  virtual size_t bytes() const { return sizeof(float) * (residual_.size() + rest_.size()); }

 protected:
  // Sends what represents `rest`, adds what all ranks sent to `out`, which is zero, and takes what
  // was sent off `rest`.
  virtual absl::Status Exchange(Communicator& communicator, std::span<float> rest,
                                std::span<float> out, std::string_view name) = 0;

 private:
  std::vector<float> residual_;
  std::vector<float> rest_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_FEEDBACK_SUM_H_

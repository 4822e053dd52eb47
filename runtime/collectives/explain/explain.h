// What `ringmaster explain collectives` prints: for each size the algorithm that would be chosen,
// and what every candidate is predicted to cost. Pure.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_EXPLAIN_EXPLAIN_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_EXPLAIN_EXPLAIN_H_

#include <cstddef>
#include <string>

#include "runtime/collectives/cost_model.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives::explain {

struct Question {
  OperationKind kind = OperationKind::kAllreduce;
  Shape shape{4, 4};
  CostModel model;
  std::string source = "built-in numbers";  // where the model's numbers are from
  Algorithm forced = Algorithm::kAuto;
  size_t segment_bytes = 256 * 1024;
  size_t min_bytes = 4;
  size_t max_bytes = size_t{256} << 20;
};

// What `--op` and the table call an operation: "ordered-sum", as `ringmaster bench collectives`
// does.
std::string NameOf(OperationKind kind);

// A heading with the model's numbers, then a line for each size: 4, 8, ... bytes, the choice, its
// microseconds, and those of all candidates; "-" for one that makes no sense, also where it is
// forced.
std::string Table(const Question& question);

// The same as one JSON object; candidates that make no sense are left out.
std::string Json(const Question& question);

}  // namespace ringmaster::collectives::explain

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_EXPLAIN_EXPLAIN_H_

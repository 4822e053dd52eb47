// The benchmark's output: the columns and the footer of nccl-tests, or JSON. Pure.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_REPORT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/bench/options.h"

namespace ringmaster::collectives::bench {

struct Timing {
  double seconds = 0;  // of one call: the mean over the calls, and over the ranks
  uint64_t wrong = 0;  // elements, on all ranks, that were not what they had to be
  double step_ns = 0;  // StepNanoseconds before the calls or after, where the slowest rank had more
};

struct Row {
  size_t bytes = 0;
  size_t count = 0;
  std::string type = "float";
  std::string redop = "sum";
  int root = -1;
  std::optional<Timing> out_of_place;  // nothing: the operation has no such form
  std::optional<Timing> in_place;
  std::optional<Timing> beside;  // of the other operation; the one that it is beside has one place
};

// Bytes that the links of one rank must carry for each byte of the size column: what makes busbw
// comparable with a link's speed at every number of ranks (nccl-tests, PERFORMANCE.md).
double BusFactor(const std::string& op, int ranks);

// All elements of a run that were wrong.
uint64_t AllWrong(const std::vector<Row>& rows);

// The lines before the first row, each row, and the lines after the last; each ends with a newline.
std::string Header(const Options& options);
std::string Line(const Options& options, const Row& row);
std::string Footer(const Options& options, const std::vector<Row>& rows);

// The whole run as one JSON object.
std::string Json(const Options& options, const std::vector<Row>& rows);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_REPORT_H_

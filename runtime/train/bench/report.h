// The benchmark's output. Pure.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_REPORT_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_REPORT_H_

#include <string>

#include "runtime/train/bench/measure.h"
#include "runtime/train/bench/options.h"

namespace ringmaster::train::bench {

// For people: the step, then the classes of ops, or with options.profile every op.
std::string Text(const Options& options, const Result& result);

// One JSON object in one line.
std::string Json(const Options& options, const Result& result);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_REPORT_H_

// The benchmark's output. Pure.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_REPORT_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_REPORT_H_

#include <string>

#include "runtime/train/bench/limit.h"
#include "runtime/train/bench/measure.h"
#include "runtime/train/bench/options.h"

namespace ringmaster::train::bench {

// For people: the step, then the classes of ops, or with options.profile every op.
std::string Text(const Options& options, const Result& result);
// The same of what the arithmetic alone takes.
std::string Text(const Options& options, const Limit& limit);

// One JSON object in one line.
std::string Json(const Options& options, const Result& result);
std::string Json(const Options& options, const Limit& limit);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_REPORT_H_

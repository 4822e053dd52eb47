// What a run of the benchmark measures: the flags of ringmaster-bench-train.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_OPTIONS_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/kernel.h"

namespace ringmaster::train::bench {

struct Options {
  std::string model;
  int64_t batch = 32;
  int shards = 1;  // virtual shards of the batch; 0: none
  int threads = 1;
  bool bind = false;           // each thread to a core of its own
  double seconds = 3;          // how long steps are timed; at least kLeastSteps are
  double dropout = -1;         // of the model's dropout layers; negative: what the model has
  std::vector<int64_t> input;  // extents of one sample; empty: what the model is known for
  int64_t classes = 0;         // 0: likewise
  int64_t layers = 0;          // blocks of gpt-2; 0: what it has
  double learning_rate = 0.01;
  bool json = false;
  bool profile = false;    // every op instead of classes of them
  bool limit = false;      // time the arithmetic alone instead: limit.h
  std::string trace;       // a file for step_trace.h; empty: none
  std::string dump_graph;  // a folder for graph_dump.h; empty: none
  std::string dump;        // a file for dump.h; empty: time steps instead
  int64_t dump_steps = 10;
  bool in_double = false;  // whether these are double_steps.h's, of the batch as one shard
  kernels::Selection kernels = kernels::Selection::kFastest;
};

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_OPTIONS_H_

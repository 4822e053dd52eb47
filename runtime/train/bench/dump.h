// What another framework needs to repeat the first steps of a network, and what must come out.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_DUMP_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_DUMP_H_

#include "absl/status/status.h"
#include "runtime/train/bench/options.h"

namespace ringmaster::train::bench {

// Writes the file options.dump in the safetensors format. All steps see the same batch:
//   inputs, labels    of the batch; labels as I32
//   weights/NAME      before the first step
//   gradients/NAME    of the mean loss, in the first step
//   losses            [options.dump_steps], the mean loss of each step
// and as metadata learning_rate and momentum. Gradients and losses are F64 where options.in_double
// says that they are double_steps.h's, everything else that is no label or token F32. Dropout is
// off: its masks are our own.
// Errors are the Trial's, and those of files.
absl::Status Dump(Options options);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_DUMP_H_

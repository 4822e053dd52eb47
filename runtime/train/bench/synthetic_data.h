// Samples that cost nothing to make: a few, drawn once, that stand for many.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_SYNTHETIC_DATA_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_SYNTHETIC_DATA_H_

#include <cstdint>

#include "runtime/data/dataset.h"

namespace ringmaster::train::bench {

// `samples` samples, of which the first `distinct` are drawn and the others repeat them: features
// uniform in [-1, 1), tokens and labels uniform over the classes, the same in every process.
// Nothing is held out. Throws std::bad_alloc when there is no memory.
data::Splits MakeSyntheticData(const data::SampleFormat& format, uint32_t distinct,
                               uint32_t samples);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_SYNTHETIC_DATA_H_

// Samples that cost nothing to make: a few, drawn once, that stand for many.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_SYNTHETIC_DATA_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_SYNTHETIC_DATA_H_

#include <cstddef>
#include <cstdint>

#include "runtime/data/dataset.h"

namespace ringmaster::train::bench {

// `samples` samples, of which the first `distinct` are drawn and the others repeat them: features
// uniform in [-1, 1), tokens and labels uniform over the classes, the same in every process.
// Nothing is held out. They are drawn when the first one is asked for, so that what does not fit
// the memory can be refused before; that throws std::bad_alloc when there is none.
data::Splits MakeSyntheticData(const data::SampleFormat& format, uint32_t distinct,
                               uint32_t samples);

// Bytes that so many drawn samples take.
size_t SyntheticBytes(const data::SampleFormat& format, uint32_t distinct);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_SYNTHETIC_DATA_H_

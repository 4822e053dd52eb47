// The number of threads that kernels use: a constant of the process.
//
// The bits of a sum may depend on how many threads made it, so the number comes from the job (never
// from the cores that happen to be free) and cannot change after the first kernel was prepared.
// There is one OpenMP team for our kernels and oneDNN's. Thread-safe.
#ifndef RINGMASTER_RUNTIME_DEVICE_THREADS_H_
#define RINGMASTER_RUNTIME_DEVICE_THREADS_H_

#include "absl/status/status.h"

namespace ringmaster::device {

// Fixes the number of threads for the life of the process. May be repeated with the same number.
//   kInvalidArgument     `count` is not in [1, 1024]
//   kFailedPrecondition  another number is in use already
absl::Status SetThreadCount(int count);

// The number of threads. If nobody called SetThreadCount before the first use, it is fixed to 1.
int ThreadCount();

// Makes OpenMP regions that the calling thread opens use ThreadCount() threads. OpenMP keeps that
// setting per thread, so whoever runs kernels calls this first; it costs a few nanoseconds.
void AdoptThreadCount();

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_THREADS_H_

// Which vectors this process computes with: the widest that the processor has, or narrower ones
// where RINGMASTER_MAX_VECTORS says so, so that machines of several kinds choose the same kernels.
#ifndef RINGMASTER_RUNTIME_DEVICE_VECTORS_H_
#define RINGMASTER_RUNTIME_DEVICE_VECTORS_H_

namespace ringmaster::device {

// Each with those before it.
enum class Vectors {
  kAvx2,    // and FMA
  kAvx512,  // AVX-512F and BW
  kAmx,     // tiles of bf16, where the system lets programs use them
};

// Whether the processor has these, and the environment does not rule them out. The first call asks
// the system for tiles where these are not. Thread-safe; the same answer as long as the process
// lives.
bool MayUse(Vectors vectors);

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_VECTORS_H_

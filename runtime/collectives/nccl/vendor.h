// The functions of the NVIDIA driver and of NCCL that we call, found when the program runs: one
// program serves machines with and without them. The CUDA runtime is not needed: NCCL brings its
// own, and works on the context that the driver's functions make current.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_VENDOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_VENDOR_H_

#include <cuda.h>
#include <nccl.h>
#include <string>

#include "absl/status/statusor.h"
#include "common/status.h"

namespace ringmaster::collectives::nccl {

// Each is a pointer of its own name, as cuda.h spells it for this version of the interface.
// clang-format off
#define RM_CUDA_FUNCTIONS(F)                                                    \
  F(cuInit) F(cuGetErrorString)                                                 \
  F(cuDeviceGetCount) F(cuDeviceGet) F(cuDeviceGetPCIBusId)                     \
  F(cuDeviceGetAttribute)                                                       \
  F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease) F(cuCtxSetCurrent)   \
  F(cuCtxGetCurrent)                                                            \
  F(cuMemAlloc) F(cuMemFree) F(cuMemAllocHost) F(cuMemFreeHost)                 \
  F(cuMemcpyHtoDAsync) F(cuMemcpyDtoHAsync)                                     \
  F(cuStreamCreate) F(cuStreamDestroy) F(cuStreamWaitEvent)                     \
  F(cuEventCreate) F(cuEventDestroy) F(cuEventRecord) F(cuEventQuery)
#define RM_NCCL_FUNCTIONS(F)                                                    \
  F(ncclGetVersion) F(ncclGetErrorString) F(ncclGetLastError)                   \
  F(ncclGetUniqueId) F(ncclCommInitRankConfig) F(ncclCommGetAsyncError)         \
  F(ncclCommFinalize) F(ncclCommDestroy) F(ncclCommAbort)                       \
  F(ncclGroupStart) F(ncclGroupEnd)                                             \
  F(ncclAllReduce) F(ncclReduce) F(ncclReduceScatter) F(ncclBroadcast)          \
  F(ncclAllGather) F(ncclSend) F(ncclRecv)
// clang-format on

struct Vendor {
#define RM_DECLARE(function) decltype(&::function) function = nullptr;
  RM_CUDA_FUNCTIONS(RM_DECLARE)
  RM_NCCL_FUNCTIONS(RM_DECLARE)
#undef RM_DECLARE

  // Each names the call, and says what the library says of its result. ncclInProgress is no error:
  // communicators do not block.
  absl::Status Check(CUresult result, const char* call) const;
  absl::Status Check(ncclResult_t result, const char* call) const;
};

// Loads libcuda.so.1 and libnccl.so.2, once, as the loader finds them, and starts the driver. They
// stay as long as the process. kFailedPrecondition: what is missing, all of it, and whence to get
// it. From any thread.
absl::StatusOr<const Vendor*> LoadVendor();

// "2.30.7"
std::string VersionText(int code);

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_VENDOR_H_

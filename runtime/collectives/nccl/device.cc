#include "runtime/collectives/nccl/device.h"

#include <algorithm>
#include <cstring>

#include "runtime/collectives/nccl/wait.h"

namespace ringmaster::collectives::nccl {
namespace {

// The calls of ranks that share a device wait for one another inside of it, so the blocks of all of
// them must fit there at once, one to a multiprocessor, and leave room.
constexpr int kProcessorsOfABlock = 2;

}  // namespace

// Returns with the call's name from the enclosing function unless it went well.
#define RM_CUDA(function, ...) \
  RM_RETURN_IF_ERROR(vendor_.Check(vendor_.function(__VA_ARGS__), #function))

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const Vendor& vendor, const Seat& seat,
                                                     size_t slot_bytes) {
  std::unique_ptr<Device> device(new Device(vendor, seat, slot_bytes));
  RM_RETURN_IF_ERROR(device->Prepare());
  return device;
}

absl::Status Device::Prepare() {
  RM_CUDA(cuDeviceGet, &device_, seat_.ordinal);
  if (seat_.ranks > 1) {
    int processors = 0;
    RM_CUDA(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_);
    most_blocks_ = std::max(1, processors / (kProcessorsOfABlock * seat_.ranks));
  }
  RM_CUDA(cuDevicePrimaryCtxRetain, &context_, device_);
  RM_RETURN_IF_ERROR(Enter());
  for (CUstream* stream : {&up_, &work_, &down_})
    RM_CUDA(cuStreamCreate, stream, CU_STREAM_NON_BLOCKING);
  for (Slot& slot : slots_) {
    RM_CUDA(cuMemAlloc, &slot.memory, slot_bytes_);
    RM_CUDA(cuMemAllocHost, &slot.pages, slot_bytes_);
    for (CUevent* event : {&slot.uploaded, &slot.combined, &slot.downloaded})
      RM_CUDA(cuEventCreate, event, CU_EVENT_DISABLE_TIMING);
  }
  return absl::OkStatus();
}

Device::~Device() {
  if (context_ == nullptr) return;
  CUcontext own = nullptr;  // the thread's
  vendor_.cuCtxGetCurrent(&own);
  vendor_.cuCtxSetCurrent(context_);
  for (const Slot& slot : slots_) {
    for (const CUevent event : {slot.uploaded, slot.combined, slot.downloaded}) {
      if (event != nullptr) vendor_.cuEventDestroy(event);
    }
    if (slot.pages != nullptr) vendor_.cuMemFreeHost(slot.pages);
    if (slot.memory != 0) vendor_.cuMemFree(slot.memory);
  }
  for (const CUstream stream : {up_, work_, down_}) {
    if (stream != nullptr) vendor_.cuStreamDestroy(stream);
  }
  vendor_.cuCtxSetCurrent(own == context_ ? nullptr : own);
  vendor_.cuDevicePrimaryCtxRelease(device_);
}

absl::Status Device::Enter() {
  RM_CUDA(cuCtxSetCurrent, context_);
  return absl::OkStatus();
}

void Device::Visit(absl::FunctionRef<void()> body) {
  CUcontext own = nullptr;
  if (vendor_.cuCtxGetCurrent(&own) != CUDA_SUCCESS || !Enter().ok()) return;
  body();
  vendor_.cuCtxSetCurrent(own);
}

absl::Status Device::Run(Transport& transport, Comm& comm, std::span<const Step> steps,
                         std::chrono::milliseconds patience) {
  for (size_t i = 0; i < steps.size() + kSlots; ++i) {
    Slot& slot = slots_[i % kSlots];
    if (i >= kSlots && i - kSlots < steps.size())
      RM_RETURN_IF_ERROR(Collect(transport, comm, slot, steps[i - kSlots], patience));
    if (i < steps.size()) RM_RETURN_IF_ERROR(Launch(transport, comm, slot, steps[i], patience));
  }
  return absl::OkStatus();
}

// What was queued for NCCL is on the stream only once NCCL is ready: then what waits for it may be
// queued behind.
absl::Status Device::Launch(Transport& transport, Comm& comm, Slot& slot, const Step& step,
                            std::chrono::milliseconds patience) {
  auto* const pages = static_cast<std::byte*>(slot.pages);
  for (const auto& [from, at, bytes] : step.uploads) {
    std::memcpy(pages + at, from, bytes);
    RM_CUDA(cuMemcpyHtoDAsync, slot.memory + at, pages + at, bytes, up_);
  }
  RM_CUDA(cuEventRecord, slot.uploaded, up_);
  RM_CUDA(cuStreamWaitEvent, work_, slot.uploaded, CU_EVENT_WAIT_DEFAULT);
  RM_RETURN_IF_ERROR(comm.Queue(step.calls, slot.memory, work_));
  RM_RETURN_IF_ERROR(
      WaitBeside(transport, patience, "what NCCL was given", [&] { return comm.Ready(); }));
  RM_CUDA(cuEventRecord, slot.combined, work_);
  RM_CUDA(cuStreamWaitEvent, down_, slot.combined, CU_EVENT_WAIT_DEFAULT);
  for (const auto& [to, at, bytes] : step.downloads)
    RM_CUDA(cuMemcpyDtoHAsync, pages + at, slot.memory + at, bytes, down_);
  RM_CUDA(cuEventRecord, slot.downloaded, down_);
  return absl::OkStatus();
}

absl::Status Device::Collect(Transport& transport, Comm& comm, Slot& slot, const Step& step,
                             std::chrono::milliseconds patience) {
  const auto over = [&]() -> absl::StatusOr<bool> {
    const CUresult state = vendor_.cuEventQuery(slot.downloaded);
    if (state == CUDA_SUCCESS) return true;
    if (state != CUDA_ERROR_NOT_READY) return vendor_.Check(state, "the device");
    RM_RETURN_IF_ERROR(comm.Ready().status());
    return false;
  };
  RM_RETURN_IF_ERROR(WaitBeside(transport, patience, "a step on the device", over));
  const auto* const pages = static_cast<const std::byte*>(slot.pages);
  for (const auto& [to, at, bytes] : step.downloads) std::memcpy(to, pages + at, bytes);
  return absl::OkStatus();
}

#undef RM_CUDA

}  // namespace ringmaster::collectives::nccl

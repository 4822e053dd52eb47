// One device, and memory on both of its sides through which the steps of an operation go.
//
// Values are copied into pages that the device may read by itself, then over, worked on, and back.
// There are several slots, so that one step's values are on their way while another's are combined
// and a third's are copied by the processor.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_DEVICE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_DEVICE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/nccl/comm.h"
#include "runtime/collectives/nccl/plan.h"
#include "runtime/collectives/nccl/ranks.h"
#include "runtime/collectives/nccl/vendor.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::nccl {

// Not thread-safe, but it may be used by one thread after another: each calls Enter first.
class Device {
 public:
  // Takes the primary context of the seat's device, which it shares with the process's other
  // libraries, and slots of so many bytes. `vendor` must outlive it. kResourceExhausted: there is
  // no memory.
  static absl::StatusOr<std::unique_ptr<Device>> Open(const Vendor& vendor, const Seat& seat,
                                                      size_t slot_bytes);
  // Nothing may be on its way.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  size_t slot_bytes() const { return slot_bytes_; }

  // How many blocks of threads a call of NCCL may have here, so that those of all ranks that share
  // the device fit; kAnyBlocks where none does.
  int most_blocks() const { return most_blocks_; }

  // Makes it the calling thread's device.
  absl::Status Enter();

  // The same as long as `body` runs, for a thread that may have another one. Where the driver
  // refuses, `body` does not run.
  void Visit(absl::FunctionRef<void()> body);

  // Does the steps; blocks until all results are where they belong. `patience` is for one step. On
  // an error some may still be on their way on the device: abort `comm`.
  absl::Status Run(Transport& transport, Comm& comm, std::span<const Step> steps,
                   std::chrono::milliseconds patience);

 private:
  static constexpr size_t kSlots = 3;
  struct Slot {
    CUdeviceptr memory = 0;
    void* pages = nullptr;
    CUevent uploaded = nullptr;
    CUevent combined = nullptr;
    CUevent downloaded = nullptr;
  };

  Device(const Vendor& vendor, const Seat& seat, size_t slot_bytes)
      : vendor_(vendor), seat_(seat), slot_bytes_(slot_bytes) {}
  absl::Status Prepare();
  absl::Status Launch(Transport& transport, Comm& comm, Slot& slot, const Step& step,
                      std::chrono::milliseconds patience);
  absl::Status Collect(Transport& transport, Comm& comm, Slot& slot, const Step& step,
                       std::chrono::milliseconds patience);

  const Vendor& vendor_;
  const Seat seat_;
  const size_t slot_bytes_;
  int most_blocks_ = kAnyBlocks;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream up_ = nullptr;
  CUstream work_ = nullptr;
  CUstream down_ = nullptr;
  std::array<Slot, kSlots> slots_{};
};

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_DEVICE_H_

// Where a message goes that was posted to be received: into memory as it is, or combined with what
// this rank has. Shared by all data paths. A view; not thread-safe.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_ARRIVAL_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_ARRIVAL_H_

#include <cstddef>
#include <span>

#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

class Arrival {
 public:
  explicit Arrival(std::span<std::byte> into) : into_(into) {}
  explicit Arrival(const Combining& combining)
      : into_(combining.into),
        mine_(combining.mine.data()),
        combiner_(combining.combiner),
        arrived_is_left_(combining.arrived_is_left),
        combines_(true) {}

  size_t size() const { return into_.size(); }
  std::span<std::byte> into() const { return into_; }
  bool combines() const { return combines_; }

  // The largest number of bytes up to `bytes` that Deliver takes.
  size_t WholeElements(size_t bytes) const {
    return combines_ ? bytes - bytes % SizeOf(combiner_.type) : bytes;
  }

  // The message's bytes from `offset` on are these. Combined ones in whole elements.
  void Deliver(size_t offset, std::span<const std::byte> bytes) const;

 private:
  std::span<std::byte> into_;
  const std::byte* mine_ = nullptr;
  Combiner combiner_;
  bool arrived_is_left_ = false;
  bool combines_ = false;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_ARRIVAL_H_

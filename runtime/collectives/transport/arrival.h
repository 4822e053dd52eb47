// Where a message goes that was posted to be received: into memory as it is, or combined with what
// this rank has. Shared by all data paths. A view; not thread-safe.
//
// It is made where it is kept, from words: a processor that is to read two words at once which were
// written one by one waits until everything before them has reached memory, which is as long as a
// small message takes.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_ARRIVAL_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_ARRIVAL_H_

#include <cstddef>
#include <span>

#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

class Arrival {
 public:
  Arrival() = default;  // of nothing
  explicit Arrival(std::span<std::byte> into) : into_(into.data()), size_(into.size()) {}
  explicit Arrival(const Combining& combining)
      : into_(combining.into.data()),
        size_(combining.into.size()),
        mine_(combining.mine.data()),
        outer_(combining.outer.empty() ? nullptr : combining.outer.data()),
        combiner_(combining.combiner),
        arrived_is_left_(combining.arrived_is_left),
        combines_(true) {}

  size_t size() const { return size_; }
  std::span<std::byte> into() const { return {into_, size_}; }
  bool combines() const { return combines_; }

  // The largest number of bytes up to `bytes` that Deliver takes.
  size_t WholeElements(size_t bytes) const {
    return combines_ ? bytes & ~(SizeOf(combiner_.type) - 1) : bytes;
  }

  // The message's bytes from `offset` on are these. Combined ones in whole elements.
  void Deliver(size_t offset, std::span<const std::byte> bytes) const;

 private:
  std::byte* into_ = nullptr;
  size_t size_ = 0;
  const std::byte* mine_ = nullptr;
  const std::byte* outer_ = nullptr;
  Combiner combiner_;
  bool arrived_is_left_ = false;
  bool combines_ = false;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_ARRIVAL_H_

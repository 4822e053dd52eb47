#include "runtime/collectives/transport/arrival.h"

#include <cstring>

namespace ringmaster::collectives {

void Arrival::Deliver(size_t offset, std::span<const std::byte> bytes) const {
  if (bytes.empty()) return;
  std::byte* const into = into_ + offset;
  if (!combines_) {
    std::memcpy(into, bytes.data(), bytes.size());
    return;
  }
  const std::byte* const mine = mine_ + offset;
  const std::byte* const left = arrived_is_left_ ? bytes.data() : mine;
  const std::byte* const right = arrived_is_left_ ? mine : bytes.data();
  const size_t count = CountIn(bytes.size(), combiner_.type);
  if (outer_ == nullptr) {
    combiner_(into, left, right, count);
  } else {
    combiner_(into, outer_ + offset, left, right, count);
  }
}

}  // namespace ringmaster::collectives

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
  const size_t count = CountIn(bytes.size(), combiner_.type);
  combiner_(into, arrived_is_left_ ? bytes.data() : mine, arrived_is_left_ ? mine : bytes.data(),
            count);
}

}  // namespace ringmaster::collectives

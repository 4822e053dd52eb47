// A place for a result that may not lie yet where it is to come to.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RESULT_PLACE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RESULT_PLACE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// Small ones are the workspace's, which the round keeps; others last as long as this object.
class ResultPlace {
 public:
  static constexpr size_t kKeptBytes = 256 * 1024;

  ResultPlace(Transport& transport, size_t size)
      : large_(size > kKeptBytes ? std::make_unique_for_overwrite<std::byte[]>(size) : nullptr),
        bytes_(large_ != nullptr ? large_.get() : Kept(transport, size), size) {}

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  static std::byte* Kept(Transport& transport, size_t size) {
    return size == 0 ? nullptr : static_cast<std::byte*>(transport.workspace().allocate(size));
  }

  std::unique_ptr<std::byte[]> large_;
  std::span<std::byte> bytes_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RESULT_PLACE_H_

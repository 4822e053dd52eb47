// Fixed little-endian records: numbers and blocks of bytes, one after another, into and out of a
// span. The reader and the writer stop the program where they would pass the end: sizes are fixed
// by the protocol and checked before.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_WIRE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_WIRE_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

#include "common/check.h"

namespace ringmaster::collectives {

static_assert(std::endian::native == std::endian::little, "the wire format is the memory's");

class WireWriter {
 public:
  explicit WireWriter(std::span<std::byte> out) : out_(out) {}

  template <std::unsigned_integral T>
  void Put(T value) {
    PutBytes(&value, sizeof(value));
  }
  void PutBytes(const void* bytes, size_t count) {
    RM_CHECK(count <= out_.size(), "a record outgrew its buffer");
    std::memcpy(out_.data(), bytes, count);
    out_ = out_.subspan(count);
  }

 private:
  std::span<std::byte> out_;
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> in) : in_(in) {}

  template <std::unsigned_integral T>
  T Get() {
    T value;
    GetBytes(&value, sizeof(value));
    return value;
  }
  void GetBytes(void* bytes, size_t count) {
    RM_CHECK(count <= in_.size(), "a record was read past its end");
    std::memcpy(bytes, in_.data(), count);
    in_ = in_.subspan(count);
  }

 private:
  std::span<const std::byte> in_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_WIRE_H_

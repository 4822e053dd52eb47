// SHA-256 and HMAC-SHA-256. The adapter over OpenSSL: the only file that includes it.
// A Sha256 is not thread-safe; the free functions are.
#ifndef RINGMASTER_COMMON_SHA256_H_
#define RINGMASTER_COMMON_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

using Sha256Digest = std::array<uint8_t, 32>;

// A running hash: Update any number of times, then Finish once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  Sha256Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(std::string_view text);
Sha256Digest HmacSha256(std::string_view key, std::string_view message);

// Lower-case hexadecimal.
std::string Hex(std::span<const uint8_t> bytes);

// Compares without leaking by its time where the two differ.
bool ConstantTimeEqual(std::span<const uint8_t> a, std::span<const uint8_t> b);

// `count` bytes from the system's cryptographic generator.
std::string RandomBytes(size_t count);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_SHA256_H_

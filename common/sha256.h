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

// A running hash: Update any number of times, then Finish once; another Update or Finish ends the
// program then. Restart begins the next one in the same memory.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  // What was moved from may only be assigned to, or end.
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  Sha256Digest Finish();
  // Forgets what it was given, finished or not.
  void Restart();

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

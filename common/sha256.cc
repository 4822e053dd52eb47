#include "common/sha256.h"

#include <cstdlib>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "common/check.h"

namespace ringmaster {

// OpenSSL's older functions, whose state is a struct of the caller's: OpenSSL 3.0 takes memory for
// each hash that EVP_DigestInit_ex begins, and a training step is to take none.
struct Sha256::State {
  SHA256_CTX context;
  bool finished = false;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  Restart();
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  RM_CHECK(!state_->finished, "Sha256 updated after its end");
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

void Sha256::Update(std::string_view text) {
  Update(std::as_bytes(std::span(text.data(), text.size())));
}

Sha256Digest Sha256::Finish() {
  RM_CHECK(!state_->finished, "Sha256 finished twice");
  state_->finished = true;
  Sha256Digest digest;
  SHA256_Final(digest.data(), &state_->context);
  return digest;
}

void Sha256::Restart() {
  SHA256_Init(&state_->context);
  state_->finished = false;
}

Sha256Digest Sha256Of(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.Finish();
}

Sha256Digest HmacSha256(std::string_view key, std::string_view message) {
  Sha256Digest digest;
  unsigned length = 0;
  RM_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                digest.data(), &length) != nullptr,
           "HMAC failed");
  return digest;
}

std::string Hex(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

bool ConstantTimeEqual(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  RM_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
           "the system's random generator failed");
  return bytes;
}

}  // namespace ringmaster

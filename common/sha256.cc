#include "common/sha256.h"

#include <cstdlib>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/check.h"

namespace ringmaster {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  RM_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
           "OpenSSL has no SHA-256");
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  RM_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1,
           "SHA-256 update failed");
}

void Sha256::Update(std::string_view text) {
  Update(std::as_bytes(std::span(text.data(), text.size())));
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned length = 0;
  RM_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1,
           "Sha256 finished twice");
  return digest;
}

void Sha256::Restart() {
  // Without a name of the algorithm OpenSSL does not look it up again.
  RM_CHECK(EVP_DigestInit_ex(state_->context, nullptr, nullptr) == 1, "SHA-256 restart failed");
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

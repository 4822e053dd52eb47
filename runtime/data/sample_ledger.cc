#include "runtime/data/sample_ledger.h"

#include <array>
#include <bit>
#include <charconv>

#include <fmt/format.h>

namespace ringmaster::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the chain hashes numbers as little-endian bytes");

}  // namespace

SampleLedger::SampleLedger(const std::string& fingerprint, uint64_t seed, uint32_t samples)
    : head_(Sha256Of(fmt::format("ringmaster sample ledger v1 data={} seed={} samples={}",
                                 fingerprint, seed, samples))) {}

absl::Status SampleLedger::Append(uint64_t first, std::span<const uint32_t> samples) {
  if (first != next_position_) {
    return absl::FailedPreconditionError(fmt::format(
        "a step takes samples from position {}, but the next one is {}", first, next_position_));
  }
  const std::array<uint64_t, 2> place{first, samples.size()};
  hash_.Restart();
  hash_.Update(std::as_bytes(std::span(head_)));
  hash_.Update(std::as_bytes(std::span(place)));
  hash_.Update(std::as_bytes(samples));
  head_ = hash_.Finish();
  next_position_ += samples.size();
  return absl::OkStatus();
}

absl::Status SampleLedger::Restore(uint64_t next_position, const std::string& digest) {
  Sha256Digest head{};
  bool good = digest.size() == 2 * head.size();
  for (size_t i = 0; good && i < head.size(); ++i) {
    const char* digits = digest.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, head[i], 16);
    good = error == std::errc() && end == digits + 2;
  }
  if (!good) return absl::InvalidArgumentError("a ledger's digest is 64 hexadecimal digits");
  head_ = head;
  next_position_ = next_position;
  return absl::OkStatus();
}

}  // namespace ringmaster::data

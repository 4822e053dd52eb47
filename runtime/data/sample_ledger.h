// The sample ledger: a digest of which samples have been consumed, in which order.
//
// A chain: before the first step it is the SHA-256 of the data's fingerprint, the seed and the
// number of samples; each step hashes the chain so far, the step's first position and its samples.
// It depends on the job alone, never on ranks or rounds: a run that lost workers ends with the
// digest of one that did not, and an equal digest proves that no sample was skipped or seen twice.
// Every worker keeps it for the whole batch (less than a microsecond a step of a hundred samples),
// and each checkpoint stores it. Movable, not copyable. Not thread-safe.
#ifndef RINGMASTER_RUNTIME_DATA_SAMPLE_LEDGER_H_
#define RINGMASTER_RUNTIME_DATA_SAMPLE_LEDGER_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/sha256.h"

namespace ringmaster::data {

class SampleLedger {
 public:
  // `fingerprint` is Splits::fingerprint.
  SampleLedger(const std::string& fingerprint, uint64_t seed, uint32_t samples);

  // Records that the step taking positions `first`, `first` + 1, ... consumed `samples`.
  // kFailedPrecondition, with nothing recorded, unless `first` is next_position().
  absl::Status Append(uint64_t first, std::span<const uint32_t> samples);

  // Continues from a checkpoint: what next_position() and digest() were then.
  // kInvalidArgument, with nothing changed, if `digest` is not 64 hexadecimal digits.
  absl::Status Restore(uint64_t next_position, const std::string& digest);

  // The first position that has not been consumed.
  uint64_t next_position() const { return next_position_; }
  // The chain's head, 64 hexadecimal digits.
  std::string digest() const { return Hex(head_); }

 private:
  uint64_t next_position_ = 0;
  Sha256Digest head_;
  Sha256 hash_;  // of a step
};

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_SAMPLE_LEDGER_H_

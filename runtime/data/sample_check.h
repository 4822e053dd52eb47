// What a job can train on: checks data sets of the user's own, of which nobody knows more than that
// they are there.
#ifndef RINGMASTER_RUNTIME_DATA_SAMPLE_CHECK_H_
#define RINGMASTER_RUNTIME_DATA_SAMPLE_CHECK_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "runtime/data/dataset.h"

namespace ringmaster::data {

// Makes both parts those of one job: an absent held-out part becomes an empty one. Where there is
// no fingerprint, reads all samples, one by one, checks their labels, and hashes them.
// kInvalidArgument says which part, which sample, and what is wrong.
absl::Status CheckSplits(Splits& splits);

// Checks the labels of samples `rows`, which have been read: as many as `format` says for each.
// kInvalidArgument names the first sample that has a wrong one: "sample 17: label 3 is not in 0..1
// (2 classes)".
absl::Status CheckLabels(const SampleFormat& format, std::span<const uint32_t> rows,
                         std::span<const int32_t> labels);

// The same of samples that it reads, one by one. Errors are Dataset::Fill's, too.
absl::Status CheckLabels(const Dataset& samples, std::span<const uint32_t> rows);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_SAMPLE_CHECK_H_

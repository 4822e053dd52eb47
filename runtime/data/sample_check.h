// What a job can train on: checks data sets of the user's own, of which nobody knows more than that
// they are there.
#ifndef RINGMASTER_RUNTIME_DATA_SAMPLE_CHECK_H_
#define RINGMASTER_RUNTIME_DATA_SAMPLE_CHECK_H_

#include "absl/status/status.h"
#include "runtime/data/dataset.h"

namespace ringmaster::data {

// Makes both parts those of one job: an absent held-out part becomes an empty one. Where there is
// no fingerprint, reads all samples, one by one, checks their labels, and hashes them.
// kInvalidArgument says which part, which sample, and what is wrong.
absl::Status CheckSplits(Splits& splits);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_SAMPLE_CHECK_H_

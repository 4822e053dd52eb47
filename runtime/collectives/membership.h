// Who belongs to a round. All of it comes from the rendezvous and is the same on every rank, but
// for `rank`.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_MEMBERSHIP_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_MEMBERSHIP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ringmaster::collectives {

// One worker of a round, as the rendezvous announced it.
struct Member {
  std::string address;  // "10.0.0.7:7473" or "[fd00::7]:7473"; numeric, where its Listener listens
  std::string pod_uid;  // 1 to 64 bytes
};

struct Membership {
  std::string job;  // the job's identity, e.g. "namespace/name"; peers of another job are refused
  uint64_t round = 0;           // greater than any round opened before on the same listener
  int rank = 0;                 // this worker's place in `members`
  std::vector<Member> members;  // by rank; its size is the world size
  std::string key;  // the round's secret: peers prove that they know it. At least 16 bytes

  int world() const { return static_cast<int>(members.size()); }
};

// kInvalidArgument naming the first field that cannot be right.
absl::Status Validate(const Membership& membership);

// "rank 2 (10.0.0.7:7473, pod 3f2a...)", for messages.
std::string DescribeRank(const Membership& membership, int rank);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_MEMBERSHIP_H_

// Uids and the random ends of generated names.
//
// Both are a function of the store's seed and of the revision of the write that needs them.
// Revisions never come twice, so neither do ids, also after the store was reopened; and with a
// fixed seed a scenario prints the same ids each time.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_IDS_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_IDS_H_

#include <cstdint>
#include <string>

namespace ringmaster::kube::memory {

std::string MakeUid(std::uint64_t seed,
                    std::uint64_t revision);  // the text form of a version 4 UUID
// Five of the API server's 27 unambiguous characters. `attempt` gives another one for the same
// revision.
std::string MakeNameSuffix(std::uint64_t seed, std::uint64_t revision, int attempt);
// A seed that no other process has.
std::uint64_t RandomSeed();

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_IDS_H_

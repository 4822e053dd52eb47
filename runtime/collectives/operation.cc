#include "runtime/collectives/operation.h"

#include <fmt/format.h>

namespace ringmaster::collectives {
namespace {

constexpr size_t kMaxNameBytes = 200;

}  // namespace

uint64_t Fnv1a(const void* bytes, size_t count, uint64_t hash) {
  constexpr uint64_t kPrime = 0x100000001b3;
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * kPrime;
  return hash;
}

uint64_t Operation::Hash() const {
  const uint64_t numbers[] = {static_cast<uint64_t>(kind), static_cast<uint64_t>(type), count,
                              detail};
  return Fnv1a(name.data(), name.size(), Fnv1a(numbers, sizeof(numbers)));
}

std::string Operation::Describe() const {
  return fmt::format("{} of {} {} \"{}\"{}{}", OperationKindName(kind), count, NameOf(type),
                     name.substr(0, kMaxNameBytes), note.empty() ? "" : ", ", note);
}

}  // namespace ringmaster::collectives

#include "runtime/collectives/operation.h"

#include <cstring>
#include <iterator>

#include <fmt/format.h>

namespace ringmaster::collectives {
namespace {

constexpr size_t kMaxNameBytes = 200;

}  // namespace

// A word at a time, for this is done in every operation; the shift brings what a multiplication has
// moved up, down again.
uint64_t Digest(const void* bytes, size_t count, uint64_t hash) {
  constexpr uint64_t kPrime = 0x100000001b3;
  const auto* at = static_cast<const unsigned char*>(bytes);
  const auto add = [&](uint64_t word) {
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  };
  size_t left = count;
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    add(word);
  }
  uint64_t rest = left;  // and how many they are: zeros count
  for (size_t i = 0; i < left; ++i) rest |= static_cast<uint64_t>(at[i]) << (8 * (i + 1));
  add(rest);
  return hash;
}

uint64_t HashOfExchange(int rank, int peer, uint64_t sent, uint64_t received) {
  const uint64_t up_and_down[] = {rank < peer ? sent : received, rank < peer ? received : sent};
  return Digest(up_and_down, sizeof(up_and_down));
}

uint64_t Operation::Hash() const {
  const uint64_t numbers[] = {static_cast<uint64_t>(kind), static_cast<uint64_t>(type), count,
                              detail};
  return Digest(name.data(), name.size(), Digest(numbers, sizeof(numbers)));
}

std::string Operation::Describe() const {
  std::string text;
  DescribeTo(&text);
  return text;
}

void Operation::DescribeTo(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "{} of {} {} \"{}\"{}{}", OperationKindName(kind),
                 count, NameOf(type), name.substr(0, kMaxNameBytes), note.empty() ? "" : ", ",
                 note);
}

}  // namespace ringmaster::collectives

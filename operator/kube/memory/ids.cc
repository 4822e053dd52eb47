#include "operator/kube/memory/ids.h"

#include <random>
#include <string_view>

#include <fmt/format.h>

namespace ringmaster::kube::memory {
namespace {

// The output function of SplitMix64 (Steele, Lea, Flood 2014): every input gives another well mixed
// output.
std::uint64_t Mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace

std::string MakeUid(std::uint64_t seed, std::uint64_t revision) {
  const std::uint64_t high = Mix(seed ^ Mix(revision));
  const std::uint64_t low = Mix(high ^ revision);
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF,
                     high & 0xFFF, 0x8000 | (low >> 50), low & 0xFFFFFFFFFFFFu);
}

std::string MakeNameSuffix(std::uint64_t seed, std::uint64_t revision, int attempt) {
  // No vowels and no characters that are mistaken for one another (apimachinery's util/rand).
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::uint64_t bits = Mix(Mix(seed + static_cast<std::uint64_t>(attempt)) ^ ~revision);
  std::string suffix;
  for (int i = 0; i < 5; ++i, bits /= kAlphabet.size())
    suffix += kAlphabet[bits % kAlphabet.size()];
  return suffix;
}

std::uint64_t RandomSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace ringmaster::kube::memory

#include "runtime/tensor/random.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "runtime/device/parallel.h"

namespace ringmaster::tensor {
namespace {

constexpr int kDomainShift = 24;  // into the counter's last word, above the 56 bits of the position

uint32_t Low(uint64_t v) {
  return static_cast<uint32_t>(v);
}
uint32_t High(uint64_t v) {
  return static_cast<uint32_t>(v >> 32);
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < Philox::kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(Philox::kMultiplier0) * c[0];
    const uint64_t p1 = static_cast<uint64_t>(Philox::kMultiplier1) * c[2];
    c = {High(p1) ^ c[1] ^ k[0], Low(p1), High(p0) ^ c[3] ^ k[1], Low(p0)};
    k[0] += Philox::kWeyl0;
    k[1] += Philox::kWeyl1;
  }
  return c;
}

Philox::Input Philox::InputOf(const RandomKey& key) {
  const uint32_t domain = static_cast<uint32_t>(key.domain) << kDomainShift;
  return {{0, key.op, Low(key.position), High(key.position) ^ domain},
          {Low(key.seed), High(key.seed)}};
}

std::array<uint32_t, 4> RandomBlock(const RandomKey& key, uint32_t block) {
  Philox::Input input = Philox::InputOf(key);
  input.counter[0] = block;
  return Philox4x32(input.counter, input.key);
}

uint32_t StreamOf(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

uint32_t RandomStream::Next() {
  if (drawn_ % 4 == 0) block_ = RandomBlock(key_, static_cast<uint32_t>(drawn_ / 4));
  return block_[drawn_++ % 4];
}

uint32_t RandomStream::Below(uint32_t bound) {
  // The high word of a product is uniform except for 2^32 mod bound low words, which are drawn
  // again.
  const uint32_t reject_below = (0u - bound) % bound;
  uint64_t product = 0;
  do {
    product = static_cast<uint64_t>(Next()) * bound;
  } while (Low(product) < reject_below);
  return High(product);
}

void FillUniform(Tensor& tensor, float low, float high, uint64_t seed, std::string_view name) {
  const RandomKey key{.seed = seed, .domain = RandomDomain::kInitialiser, .op = StreamOf(name)};
  const std::span<float> values = tensor.span<float>();
  const auto blocks = static_cast<int64_t>((values.size() + 3) / 4);
  device::ParallelFor(blocks, 32, [&](int64_t block) {
    const auto bits = RandomBlock(key, static_cast<uint32_t>(block));
    const size_t first = static_cast<size_t>(block) * 4;
    for (size_t i = first; i < std::min(first + 4, values.size()); ++i)
      values[i] = low + (high - low) * ToUniform(bits[i - first]);
  });
}

void FillPermutation(std::span<uint32_t> order, uint64_t seed, uint64_t epoch) {
  std::iota(order.begin(), order.end(), 0u);
  RandomStream stream({.seed = seed, .domain = RandomDomain::kOrder, .position = epoch});
  for (auto left = static_cast<uint32_t>(order.size()); left > 1; --left)
    std::swap(order[left - 1], order[stream.Below(left)]);
}

std::vector<uint32_t> Permutation(uint32_t count, uint64_t seed, uint64_t epoch) {
  std::vector<uint32_t> order(count);
  FillPermutation(order, seed, epoch);
  return order;
}

}  // namespace ringmaster::tensor

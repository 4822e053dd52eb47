// Counter-based random numbers: a number is a pure function of who asks, never of who asked before.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011). A draw is keyed by (seed, domain, op, position, index), so any rank, thread or restart
// that needs the number gets the same one. `position` is the sample's place in the sample stream
// (epoch * samples + place) for draws that belong to a sample, and 0 or the epoch for others.
// Everything here is stateless and thread-safe unless said otherwise.
#ifndef RINGMASTER_RUNTIME_TENSOR_RANDOM_H_
#define RINGMASTER_RUNTIME_TENSOR_RANDOM_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace ringmaster::tensor {

// The ten-round Philox bijection of a 128-bit counter under a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a draw is for. Two uses with equal op and position never share numbers.
enum class RandomDomain : uint8_t { kDropout = 1, kInitialiser = 2, kOrder = 3, kAugmentation = 4 };

struct RandomKey {
  uint64_t seed = 0;
  RandomDomain domain = RandomDomain::kDropout;
  uint32_t op = 0;        // which op or parameter; StreamOf(name) for things with a name
  uint64_t position = 0;  // below 2^56
};

// Four numbers: those with indices 4 * block to 4 * block + 3.
std::array<uint32_t, 4> RandomBlock(const RandomKey& key, uint32_t block);

// What it is made of, for kernels that draw several blocks side by side.
struct Philox {
  static constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  static constexpr int kRounds = 10;

  // Of block 0; another block's number takes the place of the counter's first word.
  struct Input {
    std::array<uint32_t, 4> counter;
    std::array<uint32_t, 2> key;
  };
  static Input InputOf(const RandomKey& key);
};

// A number for RandomKey::op from a name (32-bit FNV-1a).
uint32_t StreamOf(std::string_view name);

// 24 bits of `bits` as a float in [0, 1).
inline float ToUniform(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// Draws one after another from one key. Not thread-safe. At most 2^34 draws.
class RandomStream {
 public:
  explicit RandomStream(const RandomKey& key) : key_(key) {}
  uint32_t Next();
  // Uniform in [0, bound), without bias (Lemire's rejection). bound > 0.
  uint32_t Below(uint32_t bound);

 private:
  RandomKey key_;
  std::array<uint32_t, 4> block_{};
  uint64_t drawn_ = 0;
};

// Fills an f32 tensor for parameter `name` of a job with `seed`: the same on every rank.
void FillUniform(Tensor& tensor, float low, float high, uint64_t seed, std::string_view name);

// The same from a normal distribution of mean 0, cut at some 6.3 deviations: the inverse of its
// distribution function (Wichura: "Algorithm AS 241", Applied Statistics 37, 1988), written with
// nothing but +, -, *, / and square roots, so that every machine draws the same bits.
void FillNormal(Tensor& tensor, float deviation, uint64_t seed, std::string_view name);

// The order in which epoch `epoch` visits as many samples as `order` has places, or `count`: Fisher
// and Yates, keyed by (seed, epoch).
void FillPermutation(std::span<uint32_t> order, uint64_t seed, uint64_t epoch);
std::vector<uint32_t> Permutation(uint32_t count, uint64_t seed, uint64_t epoch);

}  // namespace ringmaster::tensor

#endif  // RINGMASTER_RUNTIME_TENSOR_RANDOM_H_

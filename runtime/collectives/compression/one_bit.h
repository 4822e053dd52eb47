// One bit for each value (1-bit SGD: Seide et al., 2014; the scale is that of error-feedback
// signSGD: Karimireddy et al., 2019).
//
// Values are taken in blocks of kValues; of each a rank sends the mean magnitude and every value's
// sign, to all; everybody adds them in rank order. Out of each rank goes 1/31.5 of the vector's
// bytes, W-1 times.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_ONE_BIT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_ONE_BIT_H_

#include <cstdint>

#include "runtime/collectives/compression/feedback_sum.h"

namespace ringmaster::collectives {

// Value i is -scale where bit i is set, else scale.
struct OneBitBlock {
  static constexpr size_t kValues = 2048;
  float scale = 0;
  uint8_t negative[kValues / 8] = {};
};

class OneBitSum final : public FeedbackSum {
 public:
  explicit OneBitSum(size_t elements);

 private:
  absl::Status Exchange(Communicator& communicator, std::span<float> rest, std::span<float> out,
                        std::string_view name) override;

  // Members for their memory.
  std::vector<OneBitBlock> mine_;
  std::vector<OneBitBlock> all_;
  std::vector<size_t> counts_;  // bytes, by rank
};

// blocks = rest, and rest = what that gets wrong. As many blocks as the values fill.
void TakeSigns(std::span<float> rest, std::span<OneBitBlock> blocks);
// out += blocks.
void AddSigns(std::span<const OneBitBlock> blocks, std::span<float> out);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_ONE_BIT_H_

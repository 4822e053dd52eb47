// The largest values alone (deep gradient compression: Lin et al., 2018; Stich et al., 2018).
//
// Each rank sends the k values of largest magnitude with their places, to all; everybody adds them
// in rank order. Out of each rank go 8k(W-1) bytes, so it pays where the share is well below 1/W.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_TOP_K_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_TOP_K_H_

#include <cstdint>

#include "runtime/collectives/compression/feedback_sum.h"

namespace ringmaster::collectives {

class TopKSum final : public FeedbackSum {
 public:
  // Whether there may be such a sum. kInvalidArgument: the share is not in (0, 1], or there are
  // 2^31 elements or more.
  static absl::Status Check(size_t elements, double share);

  // `share` of the elements travel, rounded up. Both have passed Check.
  TopKSum(size_t elements, double share);

  size_t k() const { return k_; }

  size_t bytes() const override {
    return FeedbackSum::bytes() + sizeof(uint32_t) * magnitudes_.size();
  }

 private:
  absl::Status Exchange(Communicator& communicator, std::span<float> rest, std::span<float> out,
                        std::string_view name) override;

  const size_t k_;
  // Members for their memory.
  std::vector<uint32_t> magnitudes_;
  std::vector<int32_t> places_;  // what this rank sends,
  std::vector<float> values_;
  std::vector<size_t> counts_;  // and each rank, by rank,
  std::vector<int32_t> all_places_;
  std::vector<float> all_values_;
};

// places = where the values of largest magnitude are, increasing, as many as there is room for, at
// most all; of equal ones the first. A NaN is larger than all. `scratch` is memory to work in, as
// long as `values`.
void LargestPlaces(std::span<const float> values, std::span<int32_t> places,
                   std::span<uint32_t> scratch);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_TOP_K_H_

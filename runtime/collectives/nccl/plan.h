// How one operation on arrays of the host's memory becomes NCCL's: in steps, each of which brings
// values into a slot of the device's memory, has NCCL work on them there, and takes results out.
// Pure: nothing here knows a device, and offsets are bytes of the slot.
//
// Every rank of the operation makes its own plan of arguments that agree. In each step the ranks
// make the same calls of collectives; messages between two ranks are cut alike on both, so that
// their calls meet, whatever else the two do in their steps. A step never reads from the host what
// an earlier one has written there, so several may be on their way at the same time.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_PLAN_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_PLAN_H_

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/collectives/accelerator.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/element.h"

namespace ringmaster::collectives::nccl {

struct Upload {
  const std::byte* from = nullptr;
  size_t at = 0;
  size_t bytes = 0;
};
struct Download {
  std::byte* to = nullptr;
  size_t at = 0;
  size_t bytes = 0;
};

// One of NCCL's functions. It reads at `at`, and writes there too, but for those that say so.
struct Call {
  enum class Kind {
    kAllreduce,
    kReduce,         // to `peer`
    kReduceScatter,  // reads world * count at `at`, writes count at `into`
    kBroadcast,      // from `peer`
    kAllgather,      // reads count at `at`, writes world * count at `into`
    kSend,           // to `peer`
    kReceive,        // from `peer`
  };
  Kind kind = Kind::kAllreduce;
  size_t at = 0;
  size_t into = 0;
  size_t count = 0;  // elements
  Combiner combiner{Reduction::kSum, ElementType::kU8};
  int peer = 0;
};

struct Step {
  std::vector<Upload> uploads;
  std::vector<Call> calls;  // one group of NCCL's
  std::vector<Download> downloads;
};

// A slot must hold at least 512 bytes for each rank.
std::vector<Step> PlanAllreduce(const Combiner& combiner, ConstElements in, Elements out,
                                size_t slot_bytes);
std::vector<Step> PlanReduce(const Combiner& combiner, int rank, int root, ConstElements in,
                             Elements out, size_t slot_bytes);
std::vector<Step> PlanReduceScatter(const Combiner& combiner, int rank, ConstElements in,
                                    std::span<const size_t> counts, Elements out,
                                    size_t slot_bytes);
std::vector<Step> PlanBroadcast(int rank, int root, Elements data, size_t slot_bytes);
std::vector<Step> PlanAllgather(int rank, ConstElements mine, std::span<const size_t> counts,
                                Elements out, size_t slot_bytes);
std::vector<Step> PlanExchange(const Exchange& exchange, size_t slot_bytes);

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_PLAN_H_

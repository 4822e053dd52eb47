// Reductions among ranks of which some run out of data before the others (as Horovod's join).
//
// A rank without more data calls Join once. Until all ranks have, it takes part in what the others
// reduce, with zeros; then Join returns everywhere, and all may begin anew.
//
//   JoinGroup group(*communicator);
//   while (data.Next(&batch)) {
//     ...
//     RM_RETURN_IF_ERROR(group.Allreduce(Reduction::kAverage, gradient, mean, "step").status());
//   }
//   RM_ASSIGN_OR_RETURN(const int last, group.Join());  // `last` has the newest weights
//
// Every reduction begins with an allgather of a few bytes, by which all ranks learn what it is and
// who takes part: it suits programs whose ranks have different numbers of steps. (The native
// trainer does not need it: its batches are cut from one stream.)
//
// Not thread-safe. Each call is several operations of the communicator, and blocks and fails as
// those do; while the group is used, all ranks use the communicator through it alone.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_JOIN_GROUP_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_JOIN_GROUP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives {

class JoinGroup {
 public:
  // `communicator` outlives the group.
  explicit JoinGroup(Communicator& communicator) : communicator_(communicator) {}

  // out = the sum of `in` over the ranks that have not joined, or their average: divided by how
  // many they are. Returns how many. `out` is as long as `in`, and the same memory or without
  // overlap. Every rank that has not joined calls it, with the same type, count, reduction and
  // name.
  //   kInvalidArgument     another reduction than sum and average, or `in` and `out` do not match
  //   kFailedPrecondition  ranks called different reductions; the message names two and both
  absl::StatusOr<int> Allreduce(Reduction reduction, ConstElements in, Elements out,
                                std::string_view name);

  // Takes part with zeros until every rank has joined. Returns the rank that joined last; of those
  // that joined at once, the highest.
  absl::StatusOr<int> Join();

 private:
  // The two above, but for memory that runs out.
  absl::StatusOr<int> Reduce(Reduction reduction, ConstElements in, Elements out,
                             std::string_view name);
  absl::StatusOr<int> TakePart();

  // What a rank is about to do.
  struct Intent {
    bool joined = false;
    Reduction reduction = Reduction::kSum;
    ElementType type = ElementType::kU8;
    uint64_t count = 0;
    std::string name;

    std::string Encode() const;
    static absl::StatusOr<Intent> Decode(std::string_view bytes);
    std::string Describe() const;
  };

  absl::StatusOr<std::vector<Intent>> Exchange(const Intent& mine);
  // The ranks' common reduction, from the intents of those that have not joined.
  static absl::StatusOr<Intent> Agree(const std::vector<Intent>& intents);
  absl::Status Sum(const Intent& intent, Elements values);

  int LastOf(const std::vector<bool>& before) const;

  Communicator& communicator_;
  std::vector<bool> joined_;  // by rank, as of the last exchange
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRAINING_JOIN_GROUP_H_

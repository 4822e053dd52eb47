// One operation at one size: its memory, the call, and what it must give.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_WORKLOAD_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/bench/options.h"
#include "runtime/collectives/bench/pattern.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives::bench {

// Where an operation reads and writes. `out` is empty where it gives this rank nothing.
struct Place {
  Elements in;
  Elements out;
};

// Elements of `out` that must be those of the pattern.
struct Expectation {
  size_t offset = 0;
  size_t count = 0;
  Pattern pattern;
  size_t start = 0;
};

// Not thread-safe; for one rank. Its communicator must outlive it.
class Workload {
 public:
  // `bytes` is the size column: all of the elements, or of the parts together, of one rank; less
  // what does not divide by the type's size and the ranks. kInvalidArgument: the operation knows
  // no such type.
  static absl::StatusOr<Workload> Create(Communicator& communicator, const Options& options,
                                         size_t bytes);

  size_t bytes() const { return bytes_; }
  size_t count() const { return count_; }  // what a rank contributes or gets, as nccl-tests count

  // Nothing where the operation has no such form.
  const std::optional<Place>& out_of_place() const { return out_of_place_; }
  const std::optional<Place>& in_place() const { return in_place_; }

  // Fills the memory, with wrong values where results go.
  void Prepare(const Place& place);
  // Makes all of it zero: what a reduction in place may do again and again.
  void Clear(const Place& place);
  absl::Status Call(const Place& place) { return call_(place); }
  uint64_t CountWrong(const Place& place) const;

 private:
  Workload() = default;

  size_t bytes_ = 0;
  size_t count_ = 0;
  std::vector<std::byte> first_;
  std::vector<std::byte> second_;
  std::optional<Place> out_of_place_;
  std::optional<Place> in_place_;
  Pattern input_;  // empty: this rank reads nothing
  std::vector<Expectation> expected_;
  std::function<absl::Status(const Place&)> call_;

  friend class WorkloadBuilder;
};

// What --op, --type and --redop may be, in nccl-tests' words where it has them.
const std::vector<std::string>& OperationNames();
const std::vector<std::string>& TypeNames();
const std::vector<std::string>& ReductionNames();

// Has a --redop, and a --root.
bool Reduces(const std::string& op);
bool HasRoot(const std::string& op);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_WORKLOAD_H_

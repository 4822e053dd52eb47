// A place to play faults in: a group whose connections to and from one rank, the victim, go through
// a relay, and a wire in the victim's algorithm that says when.
//
// Ranks are threads. The relay resets the victim's connections (killed), lets nothing through any
// more (cut off), or other bytes than came (garbled); a stopped one does not go on until the others
// are done. The moment is a step of the victim's: the n-th time that its algorithm posts a message
// or has waited for one.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_FAULT_YARD_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_FAULT_YARD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/temporary_folder.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/testing/tripwire.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline constexpr int kAtOnce = kSanitized ? 6 : 14;  // cases

enum class Fault { kKilled, kStopped, kCutOff, kGarbled };

struct FaultCase {
  const Call* call;
  Fault fault;
  int victim;
  int at;             // the victim's step
  std::string phase;  // in this phase; empty: of all
  bool connected;     // before; else all connections are made by the operation itself

  std::string Name(int rank) const;
};

// How long arrays and their pieces are, and what of them fits between two ranks that share memory:
// all of it, in less than usual, as memory is made anew in every round. And which calls are played;
// none: all.
struct FaultLoad {
  size_t count = kCallCount;
  size_t shared_memory_bytes = 64 * 1024;
  size_t segment_bytes = kCallSegmentBytes;
  std::vector<std::string> names{};
  int at_once = kAtOnce;  // cases
};

// Cases are played one after another; several yards may be used at once. Each call below runs
// rounds of its own, by a thread for each rank, and ends with all of them; what is not as it must
// be fails the test.
class FaultYard {
 public:
  FaultYard(int world, Wires wires);

  // From the next round on.
  void Use(const FaultLoad& load);
  // In which phase each step is that `victim` makes in the call.
  std::vector<std::string_view> PhasesOf(const Call& call, int victim);
  // That went through the relay meanwhile.
  uint64_t bytes() const { return bytes_; }
  // In which phase it struck; none where the operation was over.
  std::optional<std::string_view> Play(const FaultCase& c);
  // `late` comes later than the others, by 0.6 of the time-outs, which is no fault of anybody's.
  void PlayLate(const Call& call, int late, std::chrono::milliseconds timeout, bool connected);
  // The relay resets everything of `victim` when so many bytes have come through.
  void PlayResetAfter(const Call& call, int victim, uint64_t bytes);

 private:
  void Round(const Call& call, int victim, Tripwire& wire,
             const std::function<void(int, Communicator&)>& body,
             uint64_t reset_after = UINT64_MAX);
  std::unique_ptr<Communicator> Open(int rank, int victim, Tripwire& wire);
  void ExpectNextRoundWorks(const FaultCase& c);
  void SetTimeouts(std::chrono::milliseconds connect, std::chrono::milliseconds operation);

  const int world_;
  Group group_;
  Relay relay_;
  std::vector<std::string> doors_;
  uint64_t bytes_ = 0;
  // Only to know the phase that a rank is in: nobody looks at the file.
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::unique_ptr<Timeline> timeline_ =
      Timeline::Open(folder_.path() / "timeline.json", 0, "victim", {.most_bytes = 1}).value();
};

// Runs `play(yard, job)` for each job, `at_once` at a time, each in a yard; nothing may be left
// over.
void PlayAll(int world, Wires wires, size_t jobs,
             const std::function<void(FaultYard&, size_t)>& play, int at_once = kAtOnce);

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_FAULT_YARD_H_

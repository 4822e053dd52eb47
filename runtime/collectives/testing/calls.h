// Every operation by every algorithm that it has, for tests that walk over all of them.
//
//   for (const Call& call : AllCalls()) {
//     group.options.algorithm = call.algorithm;
//     group.Run([&](Communicator& comm) { EXPECT_TRUE(call.run(comm).ok()); });
//   }
//
// A call takes some messages of kCallSegmentBytes from each rank of three or more, and looks at
// what it got. Plain values; a call may be run by several threads at once.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_CALLS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_CALLS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/algorithm.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives::testing {

inline constexpr int kCallWorld = 4;  // where nothing asks for another
inline constexpr size_t kCallSegmentBytes = 1024;
inline constexpr size_t kCallCount = 2000;

struct Call {
  std::string name;                        // "allreduce by ring"; the operation has it too
  std::string also{};                      // another operation that it is made of, or ""
  Algorithm algorithm = Algorithm::kAuto;  // to be set in the communicator's options
  // This rank's part. The operation's status; kInternal: it was OK, but with wrong numbers.
  std::function<absl::Status(Communicator&)> run;
};

// Of arrays of so many numbers.
std::vector<Call> AllCalls(size_t count = kCallCount);

// Whether an error's text names an operation of the call, or `next`, which came after it.
bool IsNamedIn(const std::string& text, const Call& call, std::string_view next);

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_CALLS_H_

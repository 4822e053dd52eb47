// Where a rank's algorithm stumbles: a step of its is each time that it posts a message, tries to
// send what it has posted, or has waited for one.
//
//   Tripwire wire;
//   wire.at = 5;
//   wire.trip = [&] { relay.Freeze(); };
//   const auto comm = OpenTripped(options, listener, &wire);
//   wire.armed = true;
//   ...an operation...
//
// Used by the thread that runs the operation.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_TRIPWIRE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_TRIPWIRE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::testing {

struct Tripwire {
  bool armed = false;
  int at = -1;          // the step; -1: none
  std::string phase{};  // of the thread's timeline, whose steps alone count; empty: all do
  // In which phase each step was, so far, while armed; and the one that tripped.
  std::vector<std::string_view> phases;
  std::optional<std::string_view> tripped_in;
  std::function<void()> trip;
  Transport* transport = nullptr;  // of the rank, below the wire
  int counted = 0;                 // steps so far

  void Step();
  // The rank's operation ends with this, as if by itself.
  void Abort(const std::string& why);
};

// The middle step of each phase, of a wire's `phases`, in the order in which they begin. Not behind
// the middle: the next time there may be less steps.
std::vector<std::pair<std::string, int>> MiddleOfEachPhase(
    const std::vector<std::string_view>& phases);

// As Communicator::Create, with the wire, if any. An error is a failure of the test.
std::unique_ptr<Communicator> OpenTripped(const CommunicatorOptions& options,
                                          tcp::Listener& listener, Tripwire* wire);

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_TRIPWIRE_H_

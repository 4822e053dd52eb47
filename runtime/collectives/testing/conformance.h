// What must come out of a communicator whatever carries its bytes. All ranks of it call these
// together; each looks at what it gets, as tests do.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_CONFORMANCE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_CONFORMANCE_H_

#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives::testing {

// From one element to more than a segment.
void ExpectEveryOperationOfEveryType(Communicator& communicator);
void ExpectEveryReduction(Communicator& communicator);
// Started calls of the communicator and of groups of its even and odd ranks, each of which takes
// what the one before it left.
void ExpectStartedCallsInOrder(Communicator& communicator);

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_CONFORMANCE_H_

// A story told once for each change that the operator makes in it, with the operator killed before
// that one, and once more right after it.
#ifndef RINGMASTER_TESTS_SCENARIOS_CRASHES_H_
#define RINGMASTER_TESTS_SCENARIOS_CRASHES_H_

#include <string>
#include <vector>

#include "tests/scenarios/script.h"

namespace ringmaster::scenarios {

// Whether the seconds that the status counts must be the same too. What a new operator is told
// again it dates anew, and a silence begins anew when it listens.
enum class Seconds { kMustBeSame, kMayDiffer };

struct Crashes {
  int calls = 0;       // changes that the operator makes in the story
  std::string end;     // the jobs and pods that an undisturbed operator leaves
  std::string broken;  // what other ends there were; empty where it was always this one
};

// Plays `history`, and then `story` with an operator that is killed: it is started anew at once,
// and its workers dial in again and say what still holds. Each time the end must be that of the
// undisturbed operator, and no pod may have been created twice.
Crashes PlayCrashes(const std::vector<Command>& history, const std::vector<Command>& story,
                    Seconds seconds);

}  // namespace ringmaster::scenarios

#endif  // RINGMASTER_TESTS_SCENARIOS_CRASHES_H_

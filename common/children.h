// Ends processes that became this one's: a subreaper (PR_SET_CHILD_SUBREAPER) inherits what its
// descendants leave behind, wherever they had moved in groups and sessions.
#ifndef RINGMASTER_COMMON_CHILDREN_H_
#define RINGMASTER_COMMON_CHILDREN_H_

#include <functional>

#include <sys/types.h>

#include "common/clock.h"

namespace ringmaster {

// Kills and reaps this process's children that `choose` names, and then those of theirs that become
// its own, until none is left or `patience` is over. Blocks for as long as they take to die.
// Thread-safe, as long as nobody else waits for the chosen.
void KillChildren(Duration patience, const std::function<bool(pid_t child)>& choose);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_CHILDREN_H_

// How the threads of a program that computes wait for one another: the environment in which it is
// started.
//
// GNU's OpenMP lets who waits at the end of a parallel region look for milliseconds before it
// sleeps. Beside another busy program, or another worker on the same processors, the thread that is
// waited for then has no processor while the one that waits uses up its own time on it: a step of
// many short regions takes up to eight times as long (docs/performance.md, "Beside other work").
// Who sleeps soon gives its processor away, and is woken at once when its turn comes.
//
// Thread safety: as getenv's; whoever sets the environment does so before there are other threads.
#ifndef RINGMASTER_COMMON_THREAD_WAITING_H_
#define RINGMASTER_COMMON_THREAD_WAITING_H_

#include <map>
#include <string>

namespace ringmaster {

// The variables that OpenMP reads when it is loaded; none where this process's environment, which a
// program inherits, says how to wait.
std::map<std::string, std::string> WaitingEnvironment();

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_THREAD_WAITING_H_

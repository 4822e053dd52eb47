// The launcher: process 1 of a worker's pod. It joins the rendezvous, runs the program, adopts and
// reaps what the program leaves behind, passes signals on, and ends with the program's exit code.
//
// Who outlives whom: the program gets SIGKILL when the launcher dies (parent-death signal). When
// the lifeline, a pipe whose other end `ringmaster run` holds, comes to its end, the launcher kills
// all that descends from it and leaves.
#ifndef RINGMASTER_LAUNCHER_LAUNCHER_H_
#define RINGMASTER_LAUNCHER_LAUNCHER_H_

#include "launcher/options.h"

namespace ringmaster::launcher {

// Runs until the program's end; returns the exit code. To be called once, from the main thread,
// before any other thread is started: it blocks the signals that it handles for all of them, and
// the program's parent-death signal hangs on the calling thread.
//
// Signals: SIGTERM and SIGINT ask for a checkpoint and an end within the grace period, a second one
// for the end at once; SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH and SIGCONT go to the program.
int RunLauncher(const Options& options);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_LAUNCHER_H_

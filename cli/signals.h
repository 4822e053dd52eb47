// Ctrl-C and SIGTERM as something to poll.
#ifndef RINGMASTER_CLI_SIGNALS_H_
#define RINGMASTER_CLI_SIGNALS_H_

namespace ringmaster::cli {

// Counts SIGINT, SIGTERM and SIGHUP from now on, instead of ending the process; ignores SIGPIPE.
// Once per process, before other threads are started.
void CatchStopSignals();

// How many have come.
int StopSignals();

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_SIGNALS_H_

// How a command says that it cannot do what it was asked.
#ifndef RINGMASTER_CLI_FAILURE_H_
#define RINGMASTER_CLI_FAILURE_H_

#include "absl/status/status.h"

namespace ringmaster::cli {

// Prints the message to standard error and returns the exit code of the status.
int FailWith(const absl::Status& status);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_FAILURE_H_

// Where this program lies, and the other programs beside it.
#ifndef RINGMASTER_CLI_PROGRAM_H_
#define RINGMASTER_CLI_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"

namespace ringmaster::cli {

// The folder of ringmaster-launcher and ringmaster-train: RINGMASTER_BIN_DIR, or the one that this
// program was started from. kNotFound names the program that is missing there.
absl::StatusOr<std::string> ProgramDirectory();

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_PROGRAM_H_

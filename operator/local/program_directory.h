// Where this program lies, and the other programs beside it.
#ifndef RINGMASTER_OPERATOR_LOCAL_PROGRAM_DIRECTORY_H_
#define RINGMASTER_OPERATOR_LOCAL_PROGRAM_DIRECTORY_H_

#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"

namespace ringmaster::local {

// The folder of these programs: RINGMASTER_BIN_DIR, or the one that this program was started from.
// kNotFound names the program that is missing there.
absl::StatusOr<std::string> ProgramDirectory(std::initializer_list<std::string> programs);

}  // namespace ringmaster::local

#endif  // RINGMASTER_OPERATOR_LOCAL_PROGRAM_DIRECTORY_H_

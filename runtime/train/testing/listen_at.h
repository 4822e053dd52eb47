// Where a launcher listens for its trainer.
#ifndef RINGMASTER_RUNTIME_TRAIN_TESTING_LISTEN_AT_H_
#define RINGMASTER_RUNTIME_TRAIN_TESTING_LISTEN_AT_H_

#include <filesystem>

#include "common/file.h"

namespace ringmaster::train::testing {

// A Unix socket that listens there for one connection. Throws std::runtime_error with the reason.
UniqueFd ListenAt(const std::filesystem::path& path);

}  // namespace ringmaster::train::testing

#endif  // RINGMASTER_RUNTIME_TRAIN_TESTING_LISTEN_AT_H_

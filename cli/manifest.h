// The manifest that a command was given.
#ifndef RINGMASTER_CLI_MANIFEST_H_
#define RINGMASTER_CLI_MANIFEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/api/parse.h"

namespace ringmaster::cli {

// Reads the file and checks it, with `set` over it (--set). kNotFound and kPermissionDenied name
// the file; kInvalidArgument lists everything that is wrong with it.
absl::StatusOr<api::ParsedJob> ReadManifest(const std::string& path,
                                            const std::vector<std::string>& set);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_MANIFEST_H_

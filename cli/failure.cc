#include "cli/failure.h"

#include <cstdio>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::cli {

int FailWith(const absl::Status& status) {
  fmt::print(stderr, "{}\n", Message(status));
  return ExitCodeFor(status);
}

}  // namespace ringmaster::cli

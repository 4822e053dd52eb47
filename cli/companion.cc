#include "cli/companion.h"

#include <cerrno>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include "cli/failure.h"
#include "common/exec_arguments.h"
#include "common/status.h"
#include "operator/local/program_directory.h"

namespace ringmaster::cli {

int BecomeCompanion(const std::string& name, std::vector<std::string> arguments) {
  const auto directory = local::ProgramDirectory({name});
  if (!directory.ok()) return FailWith(directory.status());
  return BecomeProgram(std::filesystem::path(*directory) / name, std::move(arguments));
}

int BecomeProgram(std::string path, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), path);
  execv(path.c_str(), ExecArguments(arguments).data());
  return FailWith(ErrnoStatus(errno, path));
}

}  // namespace ringmaster::cli

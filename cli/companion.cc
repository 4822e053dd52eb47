#include "cli/companion.h"

#include <cerrno>
#include <filesystem>
#include <unistd.h>

#include "cli/failure.h"
#include "common/status.h"
#include "operator/local/program_directory.h"

namespace ringmaster::cli {

int BecomeCompanion(std::string program, std::vector<std::string> arguments) {
  const auto directory = local::ProgramDirectory({program});
  if (!directory.ok()) return FailWith(directory.status());
  program = (std::filesystem::path(*directory) / program).string();
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return FailWith(ErrnoStatus(errno, program));
}

}  // namespace ringmaster::cli

// ringmaster-launcher: process 1 of a worker's pod (launcher.h).
#include <cstdio>
#include <string>
#include <vector>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"
#include "launcher/install.h"
#include "launcher/launcher.h"
#include "launcher/options.h"

namespace {

constexpr char kUsage[] =
    "usage: ringmaster-launcher [--] [COMMAND [ARGUMENT...]]\n"
    "       ringmaster-launcher --install FOLDER | --print-config | --help\n"
    "\n"
    "Joins the job's rendezvous and runs COMMAND for each round, or the native trainer when no\n"
    "COMMAND is given. The operator sets its environment; --print-config shows it. --install "
    "copies\n"
    "the launcher with its libraries, for containers of images that lack it.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--help") {
    std::fputs(kUsage, stdout);
    return ringmaster::contract::kExitOk;
  }
  if (!arguments.empty() && arguments[0] == "--print-config") {
    std::fputs(ringmaster::env::Describe().c_str(), stdout);
    return ringmaster::contract::kExitOk;
  }
  if (arguments.size() == 2 && arguments[0] == "--install") {
    const absl::Status installed = ringmaster::launcher::InstallLauncher(arguments[1]);
    if (installed.ok()) return ringmaster::contract::kExitOk;
    std::fprintf(stderr, "ringmaster-launcher: %s\n", ringmaster::Message(installed).c_str());
    return ringmaster::ExitCodeFor(installed);
  }
  const auto options = ringmaster::launcher::ReadOptions(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "ringmaster-launcher: %s\n",
                 ringmaster::Message(options.status()).c_str());
    return ringmaster::contract::kExitUsage;
  }
  return ringmaster::launcher::RunLauncher(*options);
}

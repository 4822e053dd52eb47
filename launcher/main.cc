// ringmaster-launcher: process 1 of a worker's pod (launcher.h).
#include <cstdio>
#include <string>
#include <vector>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"
#include "launcher/launcher.h"
#include "launcher/options.h"

namespace {

constexpr char kUsage[] =
    "usage: ringmaster-launcher [--] [COMMAND [ARGUMENT...]]\n"
    "       ringmaster-launcher --print-config | --help\n"
    "\n"
    "Joins the job's rendezvous and runs COMMAND for each round, or the native trainer when no\n"
    "COMMAND is given. The operator sets its environment; --print-config shows it.\n";

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
  const auto options = ringmaster::launcher::ReadOptions(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "ringmaster-launcher: %s\n",
                 ringmaster::Message(options.status()).c_str());
    return ringmaster::contract::kExitUsage;
  }
  return ringmaster::launcher::RunLauncher(*options);
}

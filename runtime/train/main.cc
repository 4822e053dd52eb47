// ringmaster-train: the native trainer of a worker. The launcher starts it and tells it everything
// over its channel; it is no command for people.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/contract.h"
#include "common/env.h"
#include "common/log.h"
#include "runtime/train/program.h"

namespace {

constexpr char kUsage[] =
    "usage: ringmaster-train [--print-config | --help]\n"
    "\n"
    "Trains what RINGMASTER_TRAINER_CONFIG says, as one worker of a job. The launcher starts it "
    "and\n"
    "speaks to it over RINGMASTER_CHANNEL; --print-config shows its environment.\n";

}  // namespace

int main(int argc, char** argv) {
  using ringmaster::contract::kExitOk;
  const std::string argument = argc > 1 ? argv[1] : "";
  if (argument == "--help") {
    std::fputs(kUsage, stdout);
    return kExitOk;
  }
  if (argument == "--print-config") {
    std::fputs(ringmaster::env::Describe().c_str(), stdout);
    return kExitOk;
  }
  if (argc > 1) {
    std::fprintf(stderr, "ringmaster-train: unknown argument %s\n%s", argv[1], kUsage);
    return ringmaster::contract::kExitUsage;
  }
  const ringmaster::train::Ending ending = ringmaster::train::RunTrainer();
  if (ending.exit_code == kExitOk) {
    ringmaster::log::Info(ending.message);
  } else {
    ringmaster::log::Error(ending.message, {{"exit_code", ending.exit_code}});
  }
  std::quick_exit(ending.exit_code);  // the metrics endpoint still runs
}

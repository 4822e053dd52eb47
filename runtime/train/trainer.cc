#include "runtime/train/trainer.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/log.h"
#include "common/status.h"
#include "runtime/train/program.h"

namespace ringmaster::train {
namespace {

template <typename Function>
std::string NamesLine(const char* kind, const std::map<std::string, Function>& parts) {
  std::string names;
  for (const auto& [name, function] : parts) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "" : fmt::format("{}: {}\n", kind, names);
}

std::string Usage(const std::string& program, const Parts& parts) {
  const std::string own = NamesLine("networks", parts.networks()) +
                          NamesLine("data sets", parts.datasets()) +
                          NamesLine("optimizers", parts.optimizers());
  return fmt::format(
      "usage: {} [--dump-graph FOLDER | --profile FOLDER | --evaluate [--json] SAVED... |\n"
      "       --print-config | --help]\n"
      "\n"
      "Trains what RINGMASTER_TRAINER_CONFIG says, as one worker of a job. The launcher starts it "
      "and\n"
      "speaks to it over RINGMASTER_CHANNEL; --print-config shows its environment. --dump-graph "
      "writes\n"
      "what becomes of the network instead, --profile where the time of its steps goes, --evaluate "
      "how\n"
      "right saved weights are: `ringmaster explain graph`, `ringmaster explain profile` and "
      "`ringmaster\n"
      "evaluate` call them.\n{}{}",
      program, own.empty() ? "" : "\nIts own parts:\n", own);
}

// Says that `files` are in the folder, or why they are not.
int Written(const absl::Status& status, const char* files, const std::string& folder) {
  if (status.ok()) {
    std::printf("%s in %s\n", files, folder.c_str());
  } else {
    std::fprintf(stderr, "%s\n", Message(status).c_str());
  }
  return ExitCodeFor(status);
}

int DumpGraph(const Parts& parts, const std::string& folder) {
  return Written(
      DumpJob(parts, folder),
      "1-model, 2-gradients, 2.NN after each pass, 3-plan and, where samples are held out, "
      "4-evaluation, each as .txt and .dot, are",
      folder);
}

int Profile(const Parts& parts, const std::string& folder) {
  return Written(ProfileJob(parts, folder),
                 "profile.txt and trace.json, for ui.perfetto.dev or chrome://tracing, are",
                 folder);
}

// "--evaluate" with `arguments`: [--json] SAVED...
int Evaluate(const Parts& parts, std::span<const std::string> arguments) {
  const bool as_json = !arguments.empty() && arguments.front() == "--json";
  if (arguments.size() == (as_json ? 1 : 0)) {
    std::fputs("--evaluate: name the weights, directories of checkpoints or files\n", stderr);
    return contract::kExitUsage;
  }
  const auto text = EvaluateJob(parts, arguments.subspan(as_json ? 1 : 0), as_json);
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", Message(text.status()).c_str());
    return absl::IsDataLoss(text.status()) ? contract::kExitBadData : ExitCodeFor(text.status());
  }
  std::fputs(text->c_str(), stdout);
  return contract::kExitOk;
}

}  // namespace

int TrainerMain(int argc, char** argv, const Parts& parts) {
  const std::string program =
      std::filesystem::path(argc > 0 ? argv[0] : "trainer").filename().string();
  const std::string argument = argc > 1 ? argv[1] : "";
  if (argument == "--help") {
    std::fputs(Usage(program, parts).c_str(), stdout);
    return contract::kExitOk;
  }
  if (argument == "--print-config") {
    std::fputs(env::Describe().c_str(), stdout);
    return contract::kExitOk;
  }
  if (argument == "--dump-graph" && argc == 3) return DumpGraph(parts, argv[2]);
  if (argument == "--profile" && argc == 3) return Profile(parts, argv[2]);
  if (argument == "--evaluate")
    return Evaluate(parts, std::vector<std::string>(argv + 2, argv + argc));
  if (argc > 1) {
    std::fprintf(stderr, "%s: unknown argument %s\n%s", program.c_str(), argv[1],
                 Usage(program, parts).c_str());
    return contract::kExitUsage;
  }
  const Ending ending = RunTrainer(parts);
  if (ending.exit_code == contract::kExitOk) {
    log::Info(ending.message);
  } else {
    log::Error(ending.message, {{"exit_code", ending.exit_code}});
  }
  std::quick_exit(ending.exit_code);  // the metrics endpoint still runs
}

}  // namespace ringmaster::train

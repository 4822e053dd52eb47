// The `ringmaster` command, for jobs of this machine. Under the name kubectl-ringmaster it is a
// plugin of kubectl, for jobs of a cluster.
#include <climits>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/companion.h"
#include "cli/evaluate_command.h"
#include "cli/explain_command.h"
#include "cli/get_command.h"
#include "cli/kubectl/plugin.h"
#include "cli/logs_command.h"
#include "cli/run_command.h"
#include "cli/schedule_command.h"
#include "cli/validate_command.h"
#include "common/contract.h"
#include "common/env.h"
#include "common/host_port.h"
#include "common/status.h"

namespace ringmaster::cli {
namespace {

void AddRun(CLI::App& app, std::function<int()>& command) {
  static RunOptions options;
  CLI::App* run = app.add_subcommand("run", "Train what a manifest describes, on this machine.");
  run->add_option("manifest", options.manifest, "The manifest, a YAML file.")->required();
  run->add_option("-w,--workers", options.workers, kWorkersHelp)->check(Whole(INT_MIN));
  run->add_option("--set", options.set, kSetHelp)->allow_extra_args(false);
  run->add_flag("--plain", options.plain, "Print lines instead of a live view.");
  run->add_flag("--fresh", options.fresh, "Start over instead of resuming an unfinished run.");
  run->add_option("--metrics-address", options.metrics_address,
                  "Serve the operator's Prometheus metrics at host:port.")
      ->check(CLI::Validator(
          [](const std::string& text) { return Message(ParseHostPort(text).status()); }, ""));
  run->callback([&] { command = [] { return Run(options); }; });
}

void AddValidate(CLI::App& app, std::function<int()>& command) {
  static std::string manifest;
  static std::vector<std::string> set;
  CLI::App* validate = app.add_subcommand(
      "validate", "Say everything that is wrong with a manifest, or what it will mean.");
  validate->add_option("manifest", manifest, "The manifest, a YAML file.")->required();
  validate->add_option("--set", set, kSetHelp)->allow_extra_args(false);
  validate->callback([&] { command = [] { return Validate(manifest, set); }; });
}

void AddGet(CLI::App& app, std::function<int()>& command) {
  static GetOptions options;
  CLI::App* get = app.add_subcommand("get", "List the jobs of the current directory.");
  get->add_option("job", options.job, "One job; all where absent.");
  get->add_option("-o,--output", options.output, "json for the whole object.")
      ->check(CLI::IsMember({"json"}));
  get->add_flag("--events", options.events, "Show what happened instead.");
  get->callback([&] { command = [] { return Get(options); }; });
}

void AddLogs(CLI::App& app, std::function<int()>& command) {
  static LogsOptions options;
  CLI::App* logs = app.add_subcommand("logs", "Print what a job's workers have written.");
  logs->add_option("job", options.job, "The job.")->required();
  logs->add_option("-w,--worker", options.index, "One worker, by its index.")->check(Whole(0));
  logs->add_option("--tail", options.tail, "Only the last lines of each log.")->check(Whole(0));
  logs->add_flag("-f,--follow", options.follow, "Go on as lines come, until the run ends.");
  logs->callback([&] { command = [] { return Logs(options); }; });
}

void AddSchedule(CLI::App& app, std::function<int()>& command) {
  static SchedulePlotOptions options;
  CLI::App* schedule = app.add_subcommand("schedule", "Look at a manifest's schedule.");
  schedule->require_subcommand(1);
  CLI::App* plot = schedule->add_subcommand(
      "plot", "Draw the learning rate and weight decay over the steps of a job.");
  plot->add_option("manifest", options.manifest, "The manifest, a YAML file.")->required();
  plot->add_option("--set", options.set, kSetHelp)->allow_extra_args(false);
  plot->add_option("--svg", options.svg, "Write a picture to this file, too.");
  plot->add_option("--csv", options.csv, "Write a table of every step to this file, too.");
  plot->add_option("--samples", options.samples,
                   "Training samples in an epoch; where absent, the data is read.")
      ->check(CLI::Range(uint32_t{1}, UINT32_MAX));
  plot->callback([&] { command = [] { return SchedulePlot(options); }; });
}

struct CompanionHelp {
  std::string name;
  std::string help;
};

// `verb` NAME: what comes after the names is the companion's own, --help too. Gives the verb, which
// may have more.
CLI::App* AddCompanions(CLI::App& app, const std::string& verb, const std::string& verb_help,
                        const std::vector<CompanionHelp>& companions,
                        std::function<int()>& command) {
  CLI::App* parent = app.add_subcommand(verb, verb_help);
  parent->require_subcommand(1);
  for (const auto& [name, help] : companions) {
    CLI::App* companion = parent->add_subcommand(name, help);
    companion->set_help_flag();
    companion->prefix_command();
    const std::string program = fmt::format("ringmaster-{}-{}", verb, name);
    companion->callback([companion, program, &command] {
      command = [companion, program] { return BecomeCompanion(program, companion->remaining()); };
    });
  }
  return parent;
}

// `explain` NAME job.yaml: its files go into a folder of that name, unless the user says which.
void AddExplain(CLI::App& explain, const std::string& name, const std::string& help,
                int (*run)(const ExplainOptions&), std::function<int()>& command) {
  const auto options = std::make_shared<ExplainOptions>();
  options->out = name;
  CLI::App* subcommand = explain.add_subcommand(name, help);
  subcommand->add_option("manifest", options->manifest, "The manifest, a YAML file.")->required();
  subcommand->add_option("--set", options->set, kSetHelp)->allow_extra_args(false);
  subcommand->add_option("-o,--out", options->out,
                         fmt::format("The folder for the files; {} where absent.", name));
  subcommand->callback(
      [options, run, &command] { command = [options, run] { return run(*options); }; });
}

void AddEvaluate(CLI::App& app, std::function<int()>& command) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* evaluate = app.add_subcommand("evaluate",
                                          "Say how right saved weights are on a job's held-out "
                                          "samples: each by itself, and the mean of "
                                          "what several predict.");
  evaluate->add_option("manifest", options->manifest, "The manifest, a YAML file.")->required();
  evaluate
      ->add_option(
          "saved", options->saved,
          "Directories of checkpoints, of which the newest is taken, or DIRECTORY@STEP; or "
          "safetensors files.")
      ->required();
  evaluate->add_option("--set", options->set, kSetHelp)->allow_extra_args(false);
  evaluate->add_flag("--json", options->as_json, "For programs.");
  evaluate->callback([options, &command] { command = [options] { return Evaluate(*options); }; });
}

int Main(int argc, char** argv) {
  CLI::App app("Ringmaster trains neural networks: one manifest, from a laptop to a cluster.",
               "ringmaster");
  app.require_subcommand(0, 1);
  bool print_config = false;
  app.add_flag("--print-config", print_config,
               "Print every environment variable, its value and where that comes from.");
  app.set_version_flag("--version", RINGMASTER_VERSION);
  std::function<int()> command;
  AddRun(app, command);
  AddValidate(app, command);
  AddGet(app, command);
  AddLogs(app, command);
  AddEvaluate(app, command);
  AddSchedule(app, command);
  AddCompanions(
      app, "bench", "Measure this machine.",
      {{"collectives", "Time the collectives of local ranks, with the columns of nccl-tests."},
       {"train", "Time training steps of a network, and what they are made of."}},
      command);
  CLI::App* explain = AddCompanions(
      app, "explain", "Say what would be chosen, and why.",
      {{"collectives", "The algorithm of a collective at each size, with what each would cost."}},
      command);
  AddExplain(*explain, "graph",
             "What becomes of a job's network: as built, with gradients, with kernels and memory; "
             "as text and for Graphviz.",
             ExplainGraph, command);
  AddExplain(*explain, "profile",
             "Where the time of a job's steps goes: one worker takes some on the job's data; as a "
             "table of all ops and as a Chrome trace.",
             ExplainProfile, command);
  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
  if (print_config) {
    fmt::print("{}", env::Describe());
    return contract::kExitOk;
  }
  std::error_code error;
  (void)std::filesystem::current_path(error);
  if (error) {
    fmt::print(stderr, "the current directory is gone: {}\n", error.message());
    return contract::kExitBadData;
  }
  if (command) return command();
  fmt::print("{}", app.help());
  return contract::kExitUsage;
}

}  // namespace
}  // namespace ringmaster::cli

int main(int argc, char** argv) {
  namespace cli = ringmaster::cli;
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "";
  if (name == cli::kubectl::kCompleterName) return cli::kubectl::Complete(argc, argv);
  if (name == cli::kubectl::kPluginName) return cli::kubectl::Main(argc, argv, RINGMASTER_VERSION);
  return cli::Main(argc, argv);
}

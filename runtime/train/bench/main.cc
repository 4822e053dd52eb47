// ringmaster-bench-train: `ringmaster bench train` runs it.
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/cpu_limit.h"
#include "common/cpu_list.h"
#include "common/cpu_topology.h"
#include "common/env.h"
#include "common/networks.h"
#include "common/status.h"
#include "common/thread_binding.h"
#include "common/thread_waiting.h"
#include "runtime/device/thread_cpus.h"
#include "runtime/train/bench/dump.h"
#include "runtime/train/bench/limit.h"
#include "runtime/train/bench/measure.h"
#include "runtime/train/bench/report.h"

namespace ringmaster::train::bench {
namespace {

constexpr int64_t kMostSamples = 1 << 20;
constexpr int kMostThreads = 1024;
constexpr int64_t kMostExtent = 1 << 20;

// "3x224x224". Empty for anything else.
std::vector<int64_t> ParseExtents(std::string_view text) {
  std::vector<int64_t> extents;
  while (true) {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 1 || extent > kMostExtent) return {};
    extents.push_back(extent);
    const auto used = static_cast<size_t>(end - text.data());
    if (used == text.size()) return extents;
    if (text[used] != 'x' || extents.size() == 4) return {};
    text.remove_prefix(used + 1);
  }
}

CLI::Validator Extents() {
  return CLI::Validator(
      [](std::string& text) {
        return ParseExtents(text).empty()
                   ? fmt::format("'{}' is not a sample's shape; write 3x224x224", text)
                   : std::string();
      },
      "SHAPE");
}

// What the network is called here that others, PyTorch among them, write without hyphens:
// resnet50. Any other name as it is.
std::string WithHyphens(const std::string& name) {
  for (const networks::Network& network : networks::kNetworks) {
    std::string bare(network.name);
    std::erase(bare, '-');
    if (name == bare) return std::string(network.name);
  }
  return name;
}

struct Flags {
  Options options;
  std::string input;
  std::string dtype = "f32";
};

void Declare(CLI::App& app, Flags& flags) {
  Options& options = flags.options;
  app.add_option("--model", options.model,
                 "The network: mlp, which is 64-128-10, " + networks::AllNames() +
                     "; hyphens may be left out.")
      ->required();
  app.add_option("--batch", options.batch, "Samples in a step; 32.")
      ->check(CLI::Range(int64_t{1}, kMostSamples));
  app.add_option(
         "--dtype", flags.dtype,
         "What is computed in; f32. f64: with --dump alone, by the reference kernels, which "
         "are slow.")
      ->check(CLI::IsMember({"f32", "f64"}));
  app.add_option("--threads", options.threads, "Threads that compute; 1.")
      ->check(CLI::Range(1, kMostThreads));
  app.add_flag("--bind", options.bind,
               "Keeps each of these on a core of its own, as `spec.trainer.cores` does.");
  auto* shards =
      app.add_option(
             "--shards", options.shards,
             "Virtual shards of the batch, whose gradients are added in one fixed order; 1. 0: "
             "none.")
          ->check(CLI::Range(0, 1 << 16));
  app.add_option("--seconds", options.seconds, "How long steps are timed; 3.")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--input", flags.input,
                 "Shape of one sample; 3x224x224, or what the network is known for.")
      ->check(Extents());
  app.add_option("--classes", options.classes, "1000, or what the network is known for.")
      ->check(CLI::Range(int64_t{2}, kMostExtent));
  app.add_option("--layers", options.layers, "Blocks of gpt-2; 12.")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  app.add_option("--learning-rate", options.learning_rate, "Of SGD with momentum; 0.01.")
      ->check(CLI::Range(0.0, 1e3));
  app.add_option("--dropout", options.dropout,
                 "Of the network's dropout layers; what the network has.")
      ->check(CLI::Range(0.0, 0.99));
  app.add_flag("--profile", options.profile, "The time of every op, not of classes of them.");
  app.add_option("--trace", options.trace,
                 "Writes one step, op by op, to this file, for ui.perfetto.dev or "
                 "chrome://tracing.");
  auto* graph = app.add_option(
      "--dump-graph", options.dump_graph,
      "Writes what the network becomes to this folder, stage by stage, as `ringmaster explain "
      "graph` does for a job.");
  app.add_flag("--json", options.json, "One JSON object instead of text.");
  auto* limit =
      app.add_flag("--limit", options.limit,
                   "Times the network's convolutions and matrix products alone in oneDNN, "
                   "with operands as it likes them: what no step of its kernels can be "
                   "faster than.");
  auto* dump = app.add_option(
      "--dump", options.dump,
      "Times nothing: writes a batch, weights, gradients and the losses of a few steps to this "
      "file, in the safetensors format, without dropout.");
  limit->excludes(dump);
  graph->excludes(limit)->excludes(dump);
  shards->excludes(limit);
  app.add_option("--dump-steps", options.dump_steps, "Steps that --dump takes; 10.")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}))
      ->needs(dump);
}

absl::Status CheckDtype(const Options& options) {
  if (!options.in_double || (!options.dump.empty() && options.shards == 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--dtype: f64 is for what --dump writes of a batch in one shard; training computes in f32");
}

absl::Status ReadEnvironment(Options& options) {
  constexpr char kForceKernels[] = "RINGMASTER_FORCE_KERNELS";
  RM_RETURN_IF_ERROR(env::CheckAll());
  if (kernels::ParseSelection(env::GetString(kForceKernels), &options.kernels))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("environment variable {}: '{}' is not reference or onednn", kForceKernels,
                  env::GetString(kForceKernels)));
}

absl::Status Run(const Options& options) {
  try {
    if (!options.dump.empty()) return Dump(options);
    if (options.limit) {
      RM_ASSIGN_OR_RETURN(const Limit limit, MeasureLimit(options));
      fmt::print("{}", options.json ? Json(options, limit) : Text(options, limit));
      return absl::OkStatus();
    }
    RM_ASSIGN_OR_RETURN(const Result result, Measure(options));
    fmt::print("{}", options.json ? Json(options, result) : Text(options, result));
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        fmt::format("out of memory: {} with a batch of {} is too large for this machine",
                    options.model, options.batch));
  }
}

// What OpenMP reads when it is loaded: how threads wait, and where they belong if they are to be
// bound. Nothing where it is there already. An error says why threads cannot be bound here.
absl::StatusOr<std::map<std::string, std::string>> MissingEnvironment(const Options& options) {
  std::map<std::string, std::string> environment = WaitingEnvironment();
  if (!options.bind || env::IsSet(contract::kEnvOtherCpus)) return environment;
  const std::vector<int> allowed = AllowedCpus();
  RM_ASSIGN_OR_RETURN(
      const ThreadBinding binding,
      PlanBinding({.threads = options.threads},
                  {.allowed = allowed, .cores = ReadCores(allowed), .limit = TightestCpuLimit()}));
  RM_RETURN_IF_ERROR(CheckMayBind(binding));
  environment.merge(BindingEnvironment(binding));
  return environment;
}

// The program starts once more where its environment lacks something.
absl::Status PrepareThreads(const Options& options, char** arguments) {
  RM_ASSIGN_OR_RETURN(const auto missing, MissingEnvironment(options));
  if (missing.empty()) return options.bind ? device::PlaceOtherThreadsAsTold() : absl::OkStatus();
  for (const auto& [name, value] : missing) setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  execv("/proc/self/exe", arguments);
  return ErrnoStatus(errno, "start this program again");
}

int Main(int argc, char** argv) {
  CLI::App app("Times the trainer's own step on samples that are made up.",
               "ringmaster bench train");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  flags.options.model = WithHyphens(flags.options.model);
  if (!flags.input.empty()) flags.options.input = ParseExtents(flags.input);
  flags.options.in_double = flags.dtype == "f64";
  absl::Status status = CheckDtype(flags.options);
  if (status.ok()) status = ReadEnvironment(flags.options);
  if (status.ok()) status = PrepareThreads(flags.options, argv);
  if (status.ok()) status = Run(flags.options);
  if (status.ok()) return contract::kExitOk;
  fmt::print(stderr, "{}\n", Message(status));
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace ringmaster::train::bench

int main(int argc, char** argv) {
  return ringmaster::train::bench::Main(argc, argv);
}

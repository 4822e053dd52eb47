// ringmaster-bench-collectives: `ringmaster bench collectives` runs it. It starts itself once more
// for each rank; the ranks form one round with the trainer's own Communicator and measure.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <signal.h>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"
#include "runtime/collectives/bench/hosts.h"
#include "runtime/collectives/bench/measure.h"
#include "runtime/collectives/bench/workload.h"
#include "runtime/collectives/local/processes.h"
#include "runtime/collectives/nccl/nccl.h"
#include "runtime/collectives/transport/tcp/listener.h"

namespace ringmaster::collectives::bench {
namespace {

constexpr int kMaxRanks = 64;
constexpr int kMaxShards = 1024;
constexpr int kNoRank = -1;
constexpr char kNccl[] = "nccl";

int Fail(const absl::Status& status, const std::string& who) {
  fmt::print(stderr, "{}{}\n", who, Message(status));
  return ExitCodeFor(status);
}

// Prints on rank 0. kDataLoss: some result was wrong.
absl::Status MeasureAll(Communicator& communicator, const Options& options) {
  const bool prints = communicator.rank() == 0;
  RM_ASSIGN_OR_RETURN(const std::vector<Point> points, Points(options));
  std::vector<Row> rows;
  if (prints && !options.json) fmt::print("{}", Header(options));
  for (const Point& point : points) {
    RM_ASSIGN_OR_RETURN(Row row, Measure(communicator, options, point));
    if (prints && !options.json) fmt::print("{}", Line(options, row));
    std::fflush(stdout);
    rows.push_back(std::move(row));
  }
  if (prints) fmt::print("{}", options.json ? Json(options, rows) : Footer(options, rows));
  const uint64_t wrong = AllWrong(rows);
  if (wrong == 0) return absl::OkStatus();
  return absl::DataLossError(fmt::format("{} elements of the results are wrong", wrong));
}

absl::Status RunRank(const Options& options, int rank) {
  RM_ASSIGN_OR_RETURN(const std::vector<Host> hosts, ParseHosts(options.hosts));
  const Host host = HostOf(hosts, rank, options.ranks);
  RM_RETURN_IF_ERROR(Enter(host));
  RM_ASSIGN_OR_RETURN(const auto listener, tcp::Listener::Open(host.address + ":0"));
  CommunicatorOptions round;
  round.job = "bench/collectives";
  round.round = 1;
  round.rank = rank;
  round.operation_timeout = std::chrono::seconds(options.timeout_seconds);
  round.transport = options.transport == "tcp"   ? TransportChoice::kTcp
                    : options.transport == "shm" ? TransportChoice::kSharedMemory
                                                 : TransportChoice::kAuto;
  round.encryption = options.tls ? Encryption::kTls : Encryption::kNone;
  RM_RETURN_IF_ERROR(local::Meet(listener->address(), options.ranks, &round));
  RM_ASSIGN_OR_RETURN(round.algorithm, AlgorithmFromEnvironment());
  round.congestion_control = env::GetString("RINGMASTER_TCP_CONGESTION_CONTROL");
  RM_ASSIGN_OR_RETURN(const auto communicator, Communicator::Create(round, *listener));
  RM_RETURN_IF_ERROR(communicator->Fit());
  if (options.transport == kNccl)
    RM_RETURN_IF_ERROR(nccl::Attach(*communicator, round.operation_timeout));
  RM_RETURN_IF_ERROR(MeasureAll(*communicator, options));
  return communicator->Barrier("end");
}

CLI::Validator SizeFlag() {
  return CLI::Validator([](std::string& text) { return Message(ParseSize(text).status()); },
                        "SIZE");
}

struct Flags {
  Options options;
  std::string min = "4";
  std::string max = "256M";
  int rank = kNoRank;
};

void Declare(CLI::App& app, Flags& flags) {
  Options& options = flags.options;
  app.add_option("--op", options.op, "The operation; allreduce.")
      ->check(CLI::IsMember(OperationNames()));
  app.add_option("--beside", options.beside,
                 "Another operation, called in turns with it: its time, and the operation's as a "
                 "part of that, stand in columns of their own.")
      ->check(CLI::IsMember(OperationNames()));
  app.add_option("--type", options.type, "Of the elements; float.")
      ->check(CLI::IsMember(TypeNames()));
  app.add_option("--redop", options.redop, "How a reduction combines them; sum.")
      ->check(CLI::IsMember(ReductionNames()));
  app.add_option("--root", options.root, "The rank of operations that have one; 0.")
      ->check(CLI::Range(0, kMaxRanks - 1));
  app.add_option(
         "--shards", options.shards,
         "Of the ordered sum; 4 for each rank, as a training job has where it says nothing.")
      ->check(CLI::Range(1, kMaxShards));
  app.add_option("--ranks", options.ranks, "Processes, of this machine, that take part; 2.")
      ->check(CLI::Range(1, kMaxRanks));
  app.add_option("--min", flags.min, "Smallest size in bytes: 4, 64K, 256M, 1G; 4.")
      ->check(SizeFlag());
  app.add_option("--max", flags.max, "Largest size; 256M. Each rank needs twice as much memory.")
      ->check(SizeFlag());
  app.add_option("--factor", options.factor, "From one size to the next; 2.")
      ->check(CLI::Range(2, 1024));
  app.add_option("--iters", options.iterations, "Calls that are timed; 20.")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--warmup", options.warmup, "Calls before those; 5.")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option(
      "--sizes", options.points,
      "These sizes, instead of min, max and factor, each with its own number of calls or "
      "without: 4:1000,64K,16M:5.");
  app.add_option("--transport", options.transport,
                 "auto (shared memory between ranks of one machine), tcp, shm, or nccl (a GPU for "
                 "each rank, and the connections of auto beside it).")
      ->check(CLI::IsMember({"auto", "tcp", "shm", kNccl}));
  app.add_flag("--tls", options.tls, "Encrypts the connections. Shared memory is not encrypted.");
  app.add_option("--timeout", options.timeout_seconds,
                 "Seconds that a rank may be silent or stopped before the run ends; 60.")
      ->check(CLI::Range(1, 86'400));
  app.add_option("--hosts", options.hosts,
                 "Network namespaces that stand for hosts, as PID@ADDRESS of a process in each: "
                 "every host gets as many ranks as the others, neighbours together.");
  app.add_flag("--json", options.json, "One JSON object instead of the table.");
  app.add_option("--rank", flags.rank)->group("");  // of the processes that this one starts
}

// That NCCL can do what is asked for, found out once instead of by every rank.
absl::Status CheckNccl(const Options& options) {
  if (options.transport != kNccl) return absl::OkStatus();
  const absl::StatusOr<int> devices = nccl::CountDevices();
  if (!devices.ok()) return Annotate(devices.status(), "--transport nccl");
  const bool shared = *devices > 0 && nccl::MayShareDevices();
  if (*devices >= options.ranks || shared) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("--transport nccl: {} ranks need a GPU each, and this machine shows {}; lower "
                  "--ranks, or let "
                  "them share (NCCL_MULTI_RANK_GPU_ENABLE=1)",
                  options.ranks, *devices));
}

int Main(int argc, char** argv) {
  CLI::App app("Measures the collectives of this machine's ranks, with the columns of nccl-tests.",
               "ringmaster bench collectives");
  signal(SIGPIPE, SIG_IGN);  // a rank that died is an error of a write
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  flags.options.min_bytes = *ParseSize(flags.min);
  flags.options.max_bytes = *ParseSize(flags.max);
  if (const absl::Status points = Points(flags.options).status(); !points.ok()) {
    Fail(points, "");
    return contract::kExitUsage;
  }
  if (const absl::Status hosts = ParseHosts(flags.options.hosts).status(); !hosts.ok()) {
    Fail(hosts, "");
    return contract::kExitUsage;
  }
  if (const int root = flags.options.root; root >= flags.options.ranks) {
    fmt::print(stderr, "--root: there is no rank {} of {}\n", root, flags.options.ranks);
    return contract::kExitUsage;
  }
  if (const int shards = flags.options.shards; shards > 0 && shards < flags.options.ranks) {
    fmt::print(stderr, "--shards: {} are too few for {} ranks: each needs one\n", shards,
               flags.options.ranks);
    return contract::kExitUsage;
  }
  if (flags.options.tls && flags.options.transport == kNccl) {
    fmt::print(stderr, "--tls: NCCL's own connections cannot be encrypted\n");
    return contract::kExitUsage;
  }
  if (flags.rank != kNoRank) {
    const absl::Status status = RunRank(flags.options, flags.rank);
    return status.ok() ? contract::kExitOk : Fail(status, fmt::format("rank {}: ", flags.rank));
  }
  if (const absl::Status nccl = CheckNccl(flags.options); !nccl.ok()) return Fail(nccl, "");
  const auto ended =
      local::RunRanks(flags.options.ranks, std::vector<std::string>(argv, argv + argc),
                      std::chrono::seconds(flags.options.timeout_seconds));
  return ended.ok() ? *ended : Fail(ended.status(), "");
}

}  // namespace
}  // namespace ringmaster::collectives::bench

int main(int argc, char** argv) {
  return ringmaster::collectives::bench::Main(argc, argv);
}

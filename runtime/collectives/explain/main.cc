// ringmaster-explain-collectives: `ringmaster explain collectives` runs it. To measure it starts
// itself once more for each rank of a node.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"
#include "common/text.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/explain/explain.h"
#include "runtime/collectives/local/processes.h"
#include "runtime/collectives/transport/tcp/listener.h"

namespace ringmaster::collectives::explain {
namespace {

constexpr int kMostRanks = 1 << 16;
constexpr double kBitsPerByte = 8;
constexpr int kMostMeasured = 64;  // ranks, of one machine
constexpr std::chrono::seconds kPatience{30};
constexpr int kNoRank = -1;

struct Flags {
  Question question;
  std::string op = "allreduce";
  int nodes = 0;  // 0: one per rank, or one in all where this machine is measured
  double latency_us = 0;
  double gbit = 0;
  bool measure = false;
  bool json = false;
  int rank = kNoRank;
};

// The operations that have a choice.
const std::map<std::string, OperationKind>& Operations() {
  static const auto* const kOperations = [] {
    auto* operations = new std::map<std::string, OperationKind>;
    for (size_t i = 0; i < kOperationKinds; ++i) {
      const auto kind = static_cast<OperationKind>(i);
      if (!AlgorithmsOf(kind).empty()) (*operations)[NameOf(kind)] = kind;
    }
    return operations;
  }();
  return *kOperations;
}

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--op", flags.op, "The operation; allreduce.")->check(CLI::IsMember(Operations()));
  app.add_option("--ranks", flags.question.shape.world, "Workers; 4.")
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--nodes", flags.nodes,
                 "Machines that they are spread over; one for each, with --measure one for all.")
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--latency-us", flags.latency_us, "Microseconds of a message between nodes; 25.")
      ->check(CLI::PositiveNumber);
  app.add_option("--gbit", flags.gbit, "Gbit/s of the network between nodes; 10.")
      ->check(CLI::PositiveNumber);
  app.add_flag(
      "--measure", flags.measure,
      "Measure, with the ranks of one node as processes of this machine, what links within "
      "a node cost.");
  app.add_flag("--json", flags.json, "One JSON object instead of the table.");
  app.add_option("--rank", flags.rank)->group("");  // of the processes that this one starts
}

int Fail(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  return contract::kExitUsage;
}

int Fail(const absl::Status& status) {
  fmt::print(stderr, "{}\n", Message(status));
  return ExitCodeFor(status);
}

void Print(const Flags& flags) {
  fmt::print("{}", flags.json ? Json(flags.question) : Table(flags.question));
}

// One rank of a node: all measure, the first explains.
absl::Status RunRank(Flags& flags, int ranks) {
  RM_ASSIGN_OR_RETURN(const auto listener, tcp::Listener::Open("127.0.0.1:0"));
  CommunicatorOptions round;
  round.job = "explain/collectives";
  round.round = 1;
  round.rank = flags.rank;
  round.operation_timeout = kPatience;
  RM_RETURN_IF_ERROR(local::Meet(listener->address(), ranks, &round));
  RM_ASSIGN_OR_RETURN(const auto communicator, Communicator::Create(round, *listener));
  RM_RETURN_IF_ERROR(communicator->Fit());
  const CostModel& measured = communicator->selector().model();
  flags.question.model.within = measured.within;
  flags.question.model.gamma = measured.gamma;
  if (flags.rank == 0) Print(flags);
  return communicator->Barrier("end");
}

int Measure(Flags& flags, const std::vector<std::string>& arguments) {
  const int ranks = flags.question.shape.per_node();
  if (ranks < 2 || ranks > kMostMeasured) {
    return Fail(
        fmt::format("--measure: a node of {}; of 2 to {} the links can be measured "
                    "on this machine",
                    WithNoun(ranks, "rank"), kMostMeasured));
  }
  if (flags.rank != kNoRank) {
    const absl::Status status = RunRank(flags, ranks);
    return status.ok() ? contract::kExitOk : Fail(status);
  }
  const auto ended = local::RunRanks(ranks, arguments, kPatience);
  return ended.ok() ? *ended : Fail(ended.status());
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Says which algorithm a collective operation takes at each size, and what the cost model "
      "predicts of every candidate. RINGMASTER_COLLECTIVE_ALGORITHM forces one.",
      "ringmaster explain collectives");
  std::signal(SIGPIPE, SIG_IGN);  // a rank that died is an error of a write
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  Question& question = flags.question;
  question.kind = Operations().at(flags.op);
  if (flags.nodes == 0) flags.nodes = flags.measure ? 1 : question.shape.world;
  question.shape.nodes = flags.nodes;
  if (question.shape.nodes > question.shape.world) {
    return Fail(fmt::format("--nodes: {} nodes for {} ranks; at most one for each", flags.nodes,
                            question.shape.world));
  }
  if (flags.latency_us > 0) question.model.between.alpha = flags.latency_us * 1e-6;
  if (flags.gbit > 0) question.model.between.beta = kBitsPerByte / (flags.gbit * 1e9);
  if (flags.latency_us > 0 || flags.gbit > 0) question.source = "numbers of the command line";
  const auto forced = AlgorithmFromEnvironment();
  if (!forced.ok()) return Fail(Message(forced.status()));
  question.forced = *forced;
  if (flags.measure) {
    question.source = question.shape.nodes == 1 ? "measured on this machine"
                                                : question.source + ", within a node measured here";
    return Measure(flags, std::vector<std::string>(argv, argv + argc));
  }
  Print(flags);
  return contract::kExitOk;
}

}  // namespace
}  // namespace ringmaster::collectives::explain

int main(int argc, char** argv) {
  return ringmaster::collectives::explain::Main(argc, argv);
}

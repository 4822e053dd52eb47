// ringmaster-explain-collectives: `ringmaster explain collectives` runs it.
#include <cstdio>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"
#include "runtime/collectives/explain/explain.h"

namespace ringmaster::collectives::explain {
namespace {

constexpr int kMostRanks = 1 << 16;
constexpr double kBitsPerByte = 8;

struct Flags {
  Question question;
  std::string op = "allreduce";
  int nodes = 0;  // 0: one per rank
  double latency_us = 0;
  double gbit = 0;
  bool json = false;
};

// The operations that have a choice.
const std::map<std::string, OperationKind>& Operations() {
  static const auto* const kOperations = [] {
    auto* operations = new std::map<std::string, OperationKind>;
    for (size_t i = 0; i < kOperationKinds; ++i) {
      const auto kind = static_cast<OperationKind>(i);
      if (!AlgorithmsOf(kind).empty()) (*operations)[OperationKindName(kind)] = kind;
    }
    return operations;
  }();
  return *kOperations;
}

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--op", flags.op, "The operation; allreduce.")->check(CLI::IsMember(Operations()));
  app.add_option("--ranks", flags.question.shape.world, "Workers; 4.")
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--nodes", flags.nodes, "Machines that they are spread over; one for each.")
      ->check(CLI::Range(1, kMostRanks));
  app.add_option("--latency-us", flags.latency_us, "Microseconds of a message between nodes; 25.")
      ->check(CLI::PositiveNumber);
  app.add_option("--gbit", flags.gbit, "Gbit/s of the network between nodes; 10.")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", flags.json, "One JSON object instead of the table.");
}

int Fail(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  return contract::kExitUsage;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Says which algorithm a collective operation takes at each size, and what the cost model "
      "predicts of every candidate. RINGMASTER_COLLECTIVE_ALGORITHM forces one.",
      "ringmaster explain collectives");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  Question& question = flags.question;
  question.kind = Operations().at(flags.op);
  question.shape.nodes = flags.nodes == 0 ? question.shape.world : flags.nodes;
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
  fmt::print("{}", flags.json ? Json(question) : Table(question));
  return contract::kExitOk;
}

}  // namespace
}  // namespace ringmaster::collectives::explain

int main(int argc, char** argv) {
  return ringmaster::collectives::explain::Main(argc, argv);
}

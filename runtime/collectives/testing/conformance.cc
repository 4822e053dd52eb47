#include "runtime/collectives/testing/conformance.h"

#include <string>

#include <gtest/gtest.h>

#include "runtime/collectives/bench/measure.h"
#include "runtime/collectives/bench/workload.h"

namespace ringmaster::collectives::testing {
namespace {

bench::Options OptionsOf(const Communicator& communicator, const std::string& op) {
  bench::Options options;
  options.ranks = communicator.world();
  options.root = communicator.world() - 1;
  options.op = op;
  return options;
}

void ExpectRight(Communicator& communicator, const bench::Options& options) {
  const size_t element = options.type == "uint8" ? 1 : options.type == "float" ? 4 : 8;
  for (const size_t bytes : {element, 7 * element, 1000 * element, 20'000 * element}) {
    const auto row = bench::Measure(communicator, options, {bytes, 2});
    ASSERT_TRUE(row.ok()) << options.op << ": " << row.status();
    EXPECT_EQ(bench::AllWrong({*row}), 0u)
        << options.redop << " " << options.op << " of " << bytes << " bytes of " << options.type;
  }
}

}  // namespace

void ExpectEveryOperationOfEveryType(Communicator& communicator) {
  for (const std::string& op : bench::OperationNames()) {
    if (op == "send-receive" && communicator.world() == 1) continue;
    for (const std::string& type : bench::TypeNames()) {
      if (op == "ordered-sum" && type != "float" && type != "double") continue;
      bench::Options options = OptionsOf(communicator, op);
      options.type = type;
      ExpectRight(communicator, options);
    }
  }
}

void ExpectEveryReduction(Communicator& communicator) {
  for (const char* op : {"allreduce", "reduce-scatter", "reduce"}) {
    for (const std::string& type : bench::TypeNames()) {
      for (const std::string& redop : bench::ReductionNames()) {
        bench::Options options = OptionsOf(communicator, op);
        options.type = type;
        options.redop = redop;
        ExpectRight(communicator, options);
      }
    }
  }
}

}  // namespace ringmaster::collectives::testing

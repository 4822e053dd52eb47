#include "runtime/collectives/testing/conformance.h"

#include <cstdint>
#include <string>
#include <vector>

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

void ExpectStartedCallsInOrder(Communicator& communicator) {
  constexpr size_t kCalls = 100;
  constexpr size_t kElements = 50;
  const int own = communicator.rank() % 2;
  const auto group = communicator.Split(own, 0, "even and odd");
  ASSERT_TRUE(group.ok()) << group.status();
  const auto changed = [](int64_t value, size_t call) {
    return value % 1000 + static_cast<int64_t>(call);
  };
  std::vector<std::vector<int64_t>> values(kCalls, std::vector<int64_t>(kElements));
  std::vector<Handle> handles;
  for (size_t i = 0; i < kCalls; ++i) {
    Communicator& on = i % 3 == 0 ? **group : communicator;
    handles.push_back(on.Start([&, i] {
      std::vector<int64_t> in(i == 0 ? values[0] : values[i - 1]);
      for (int64_t& value : in) value = changed(value, i);
      return on.Allreduce(Reduction::kSum, in, values[i], "step");
    }));
  }
  // Without Start: after all that were started.
  EXPECT_TRUE(communicator.Barrier("done").ok()) << communicator.status();
  const int64_t sizes[] = {(communicator.world() + 1) / 2, communicator.world() / 2};
  int64_t want[] = {0, 0};  // of even and odd ranks
  for (size_t i = 0; i < kCalls; ++i) {
    EXPECT_TRUE(handles[i].Done());
    ASSERT_TRUE(handles[i].Wait().ok()) << handles[i].status();
    for (int parity = 0; parity < 2; ++parity)
      want[parity] = changed(want[parity], i) * sizes[parity];
    if (i % 3 != 0) want[0] = want[1] = want[0] + want[1];
    ASSERT_EQ(values[i], std::vector<int64_t>(kElements, want[own])) << "after call " << i;
  }
}

}  // namespace ringmaster::collectives::testing

#include "runtime/graph/requirements.h"

#include <gtest/gtest.h>

#include "runtime/graph/executor.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(RequirementsTest, AreThoseOfWhatTheExecutorRuns) {
  Graph g;
  BuildResNet(g);
  const auto requirements = RequirementsOf(g, {});
  const auto executor = Executor::Compile(g, {});
  ASSERT_TRUE(requirements.ok() && executor.ok());
  EXPECT_EQ(requirements->implementation_names, (*executor)->ImplementationNames());
  EXPECT_EQ(requirements->arena_bytes, (*executor)->arena_bytes());
}

}  // namespace
}  // namespace ringmaster::graph

// What `ringmaster validate` says of a manifest's batch, with the example's and --set over it.
#include "cli/validate_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/manifest.h"

namespace ringmaster::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Explained(std::vector<std::string> set) {
  set.insert(set.begin(), "spec.workers.minReplicas=1");
  const auto parsed = ReadManifest("examples/digits/job.yaml", set);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? ExplainJob("digits", parsed->job) : "";
}

TEST(ValidateCommandTest, ShowsWhatEachNumberOfWorkersMakesOfTheShards) {
  EXPECT_EQ(Explained({}),
            "digits: valid; 4 workers, from 1 to 4\n"
            "batch 64 in 4 virtual shards of 16 samples: the same bits for 1 to 4 workers\n"
            "batch norm normalises over the 16 samples of a shard\n"
            "  WORKERS  SHARDS EACH  USEFUL\n"
            "  1        4            100 %\n"
            "  2        2            100 %\n"
            "  3        1 to 2       67 %\n"
            "  4        1            100 %\n");
}

TEST(ValidateCommandTest, SaysSoWhereShardsAreOfUnequalSize) {
  EXPECT_THAT(Explained({"spec.trainer.batch.size=66", "spec.workers.maxReplicas=4"}),
              HasSubstr("batch 66 in 4 virtual shards of 16 or 17 samples"));
}

TEST(ValidateCommandTest, ShowsWhatTheLeastAndTheMostWorkersAre) {
  const std::string text = Explained({"spec.trainer.batch.shards=6", "spec.workers.replicas=3",
                                      "spec.workers.minReplicas=3", "spec.workers.maxReplicas=6"});
  EXPECT_THAT(text, HasSubstr("3 workers, from 3 to 6\n"));
  EXPECT_THAT(text, Not(HasSubstr("\n  2  ")));
  EXPECT_THAT(text, EndsWith("  1        6            100 %\n"
                             "  3        2            100 %\n"
                             "  4        1 to 2       75 %\n"
                             "  5        1 to 2       60 %\n"
                             "  6        1            100 %\n"));
}

TEST(ValidateCommandTest, SaysThatThePlainRingsBitsChangeWithTheWorkers) {
  const std::string text = Explained({"spec.trainer.batch.shards=0"});
  EXPECT_THAT(text, HasSubstr("batch 64 over the plain ring: the order of addition"));
  EXPECT_THAT(text, Not(HasSubstr("SHARDS")));
}

TEST(ValidateCommandTest, PromisesNoBitsWhereErrorsAreFedBack) {
  EXPECT_THAT(Explained({"spec.trainer.gradients.topK.share=0.01"}),
              HasSubstr("with error feedback the weights depend on the workers"));
}

TEST(ValidateCommandTest, SaysOverWhatBatchNormNormalises) {
  EXPECT_THAT(Explained({"spec.trainer.model.batchNorm=Synchronised"}),
              HasSubstr("batch norm normalises over the 64 samples of the batch; a worker holds "
                        "the values of all of its shards at once\n"));
}

}  // namespace
}  // namespace ringmaster::cli

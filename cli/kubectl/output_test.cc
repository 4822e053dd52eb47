#include "cli/kubectl/output.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/kubectl/connection.h"

namespace ringmaster::cli::kubectl {
namespace {

const nlohmann::json kJob = {{"kind", "TrainingJob"}, {"metadata", {{"name", "digits"}}}};

TEST(OutputTest, FormatsAreKubectls) {
  EXPECT_EQ(FormatObject(kJob, kYaml), "kind: TrainingJob\nmetadata:\n  name: digits\n");
  EXPECT_EQ(nlohmann::json::parse(FormatObject(kJob, kJson)), kJob);
  EXPECT_EQ(FormatObjects({kJob, kJob}, kName),
            "trainingjob.training.ringmaster.dev/digits\n"
            "trainingjob.training.ringmaster.dev/digits\n");
  const auto list = nlohmann::json::parse(FormatObjects({kJob}, kJson));
  EXPECT_EQ(list["kind"], "List");
  EXPECT_EQ(list["items"][0], kJob);
  EXPECT_EQ(FormatObjects({}, kYaml), "apiVersion: v1\nitems: []\nkind: List\n");
}

TEST(OutputTest, NamesThatItPrintsAreNamesThatItTakes) {
  EXPECT_EQ(JobName(QualifiedName("digits")), "digits");
  for (const char* kind : {"tj", "trainingjob", "trainingjobs"})
    EXPECT_EQ(JobName(std::string(kind) + "/digits"), "digits");
  EXPECT_EQ(JobName("pod/digits"), "pod/digits");
  EXPECT_EQ(JobName("digits"), "digits");
}

}  // namespace
}  // namespace ringmaster::cli::kubectl

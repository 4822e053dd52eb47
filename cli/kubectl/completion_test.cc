#include "cli/kubectl/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/kubectl/command_tree.h"

namespace ringmaster::cli::kubectl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

Completion Of(const std::vector<std::string>& words) {
  CommandTree tree;
  return CompletionOf(tree.app(), words);
}

TEST(CompletionTest, FirstWordIsACommand) {
  EXPECT_THAT(Of({""}).words, ElementsAre("delete", "events", "get", "logs", "resume", "scale",
                                          "submit", "suspend"));
  EXPECT_THAT(Of({"s"}).words, ElementsAre("scale", "submit", "suspend"));
  EXPECT_THAT(Of({"-n", "ml", "lo"}).words, ElementsAre("logs"));
}

TEST(CompletionTest, FlagsAreTheCommandsAndEverybodys) {
  const auto flags = Of({"logs", "digits", "--"}).words;
  EXPECT_THAT(flags, Contains("--follow"));
  EXPECT_THAT(flags, Contains("--namespace"));
  EXPECT_THAT(flags, Not(Contains("--all-namespaces")));
  EXPECT_THAT(Of({"logs", "--fo"}).words, ElementsAre("--follow"));
}

TEST(CompletionTest, JobsFilesAndNamespacesAreToldApart) {
  EXPECT_EQ(Of({"logs", ""}).wanted, Wanted::kJob);
  EXPECT_EQ(Of({"logs", "--follow", "di"}).wanted, Wanted::kJob);
  EXPECT_EQ(Of({"logs", "--rank", "2", "di"}).wanted, Wanted::kJob);
  EXPECT_EQ(Of({"logs", "--rank", ""}).wanted, Wanted::kFreeText);
  EXPECT_EQ(Of({"logs", "digits", ""}).wanted, Wanted::kFreeText);
  EXPECT_EQ(Of({"submit", "-f", ""}).wanted, Wanted::kFile);
  EXPECT_EQ(Of({"submit", ""}).wanted, Wanted::kFreeText);
  EXPECT_EQ(Of({"get", "-n", ""}).wanted, Wanted::kNamespace);
  EXPECT_EQ(Of({"nonsense", ""}).wanted, Wanted::kFreeText);
  EXPECT_EQ(Of({}).wanted, Wanted::kWords);
}

TEST(CompletionTest, ClusterIsTheOneThatTheLineNames) {
  const std::vector<std::string> words{"get", "-n", "ml", "--context=blue", "di"};
  EXPECT_EQ(ValueOf(words, {"-n", "--namespace"}), "ml");
  EXPECT_EQ(ValueOf(words, {"--context"}), "blue");
  EXPECT_EQ(ValueOf(words, {"--kubeconfig"}), "");
}

}  // namespace
}  // namespace ringmaster::cli::kubectl

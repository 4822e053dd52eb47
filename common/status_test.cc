#include "common/status.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "common/contract.h"

namespace ringmaster {
namespace {

TEST(StatusTest, AnnotateKeepsTheCodeAndPutsTheContextFirst) {
  const absl::Status status = Annotate(absl::NotFoundError("no such file"), "data.csv");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(status), "data.csv: no such file");
}

TEST(StatusTest, AnnotateLeavesOkAlone) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

TEST(StatusTest, FullDiskBecomesResourceExhaustedWhichIsRetried) {
  const absl::Status status = ErrnoStatus(ENOSPC, "write step-12");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(contract::IsPermanent(ExitCodeFor(status)));
}

TEST(StatusTest, WhatAUserMayNotDoIsNoBugOfOurs) {
  EXPECT_EQ(ExitCodeFor(ErrnoStatus(EACCES, "job.yaml")), contract::kExitBadData);
  EXPECT_EQ(ExitCodeFor(ErrnoStatus(EROFS, ".ringmaster")), contract::kExitBadData);
  EXPECT_EQ(ExitCodeFor(ErrnoStatus(EISDIR, "job.yaml")), contract::kExitBadConfig);
}

TEST(StatusTest, BadConfigurationEndsWithAPermanentExitCode) {
  EXPECT_TRUE(contract::IsPermanent(ExitCodeFor(absl::InvalidArgumentError("x"))));
}

}  // namespace
}  // namespace ringmaster

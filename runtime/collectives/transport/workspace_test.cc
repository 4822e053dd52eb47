#include "runtime/collectives/transport/workspace.h"

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::collectives {
namespace {

TEST(WorkspaceTest, PiecesDoNotOverlapWithinTheBlockAndBeyondIt) {
  Workspace workspace;
  for (int operation = 0; operation < 3; ++operation) {
    std::vector<std::pair<unsigned char*, size_t>> pieces;
    for (size_t bytes = 1; bytes < 200; bytes += 7) {
      pieces.emplace_back(static_cast<unsigned char*>(workspace.allocate(bytes)), bytes);
      std::memset(pieces.back().first, static_cast<int>(bytes), bytes);
    }
    for (const auto& [memory, bytes] : pieces) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignof(std::max_align_t), 0u);
      for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], bytes);
    }
    workspace.Reset();
  }
}

TEST(WorkspaceTest, NothingHasAPlaceToo) {
  Workspace workspace;
  EXPECT_NE(workspace.allocate(0), nullptr);
  workspace.Reset();
  EXPECT_NE(workspace.allocate(0), workspace.allocate(0));
}

TEST(WorkspaceTest, WhatIsTakenAsBeforeLiesInOneBlockFromTheSecondTimeOn) {
  Workspace workspace;
  const auto take = [&] {
    std::vector<std::byte*> pieces;
    for (const size_t bytes : {16, 4096, 32, 1000})
      pieces.push_back(static_cast<std::byte*>(workspace.allocate(bytes)));
    return pieces;
  };
  take();
  workspace.Reset();
  const auto second = take();
  EXPECT_EQ(second[1] - second[0], 16);
  EXPECT_EQ(second[2] - second[0], 16 + 4096);
  EXPECT_EQ(second[3] - second[0], 16 + 4096 + 32);
  workspace.Reset();
  EXPECT_EQ(take(), second);
}

TEST(WorkspaceTest, ListsGrowInIt) {
  Workspace workspace;
  std::pmr::vector<int> list(&workspace);
  for (int i = 0; i < 1000; ++i) list.push_back(i);
  EXPECT_EQ(std::accumulate(list.begin(), list.end(), 0), 999 * 1000 / 2);
}

TEST(WorkspaceDeathTest, EndsTheProgramForAWiderAlignment) {
  Workspace workspace;
  EXPECT_DEATH(static_cast<void>(workspace.allocate(64, 64)), "alignment");
}

}  // namespace
}  // namespace ringmaster::collectives

#include "runtime/collectives/algorithms/tree.h"

#include <algorithm>

#include "common/status.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

// A piece of the array, and the tree that it goes through.
struct Task {
  const Tree* tree;
  Piece piece;
};

// In the order in which every rank handles them: first pieces of all trees, then second ones, ...
// Messages between two ranks come in this order where they are neighbours in several trees.
std::pmr::vector<Task> TasksOf(std::span<const Tree> trees, ConstElements array, size_t piece_bytes,
                               Workspace& workspace) {
  const size_t largest = PieceElements(array.element_bytes(), piece_bytes);
  const auto pieces_of = [&](size_t tree) {
    return PiecesOf(SliceOf(array.count(), static_cast<int>(trees.size()), static_cast<int>(tree)),
                    largest);
  };
  const size_t most = pieces_of(0).size();  // the first slice is the longest
  std::pmr::vector<Task> tasks(&workspace);
  tasks.reserve(most * trees.size());
  for (size_t i = 0; i < most; ++i) {
    for (size_t t = 0; t < trees.size(); ++t) {
      if (const auto pieces = pieces_of(t); i < pieces.size())
        tasks.push_back({&trees[t], pieces[static_cast<ptrdiff_t>(i)]});
    }
  }
  return tasks;
}

// Whether this rank can send up `tree` without waiting for anybody: it is a leaf, and its parent,
// which takes messages from one rank in the order of the tasks, is not its parent in another tree.
bool SendsAhead(const Tree& tree, std::span<const Tree> trees) {
  return tree.children.empty() && std::none_of(trees.begin(), trees.end(), [&](const Tree& other) {
           return &other != &tree && other.parent == tree.parent;
         });
}

void ConnectToAll(Transport& transport, std::span<const Tree> trees) {
  for (const Tree& tree : trees) {
    if (tree.parent >= 0) transport.Connect(tree.parent);
    for (const int child : tree.children) transport.Connect(child);
  }
}

}  // namespace

absl::Status TreeBroadcast(Transport& transport, std::span<const Tree> trees, Elements data,
                           size_t piece_bytes) {
  const Phase phase("pass down");
  ConnectToAll(transport, trees);
  const auto tasks = TasksOf(trees, data, piece_bytes, transport.workspace());
  Receipts receipts(tasks.size(), &transport.workspace());
  const auto bytes = [&](const Task& task) {
    return data.Slice(task.piece.offset, task.piece.count).bytes();
  };
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int parent = tasks[i].tree->parent;
    if (parent >= 0) receipts[i] = transport.PostReceive(parent, bytes(tasks[i]));
  }
  // What nobody waits for is waited for last: one tree must not hold the other up.
  for (const bool passes_on : {true, false}) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto& [tree, piece] = tasks[i];
      if (tree->children.empty() == passes_on) continue;
      if (tree->parent >= 0) RM_RETURN_IF_ERROR(transport.Wait(receipts[i]));
      for (const int child : tree->children) transport.PostSend(child, bytes(tasks[i]));
    }
  }
  return absl::OkStatus();
}

// The children are combined in a fixed order, far ones last: they are the last to be ready.
absl::Status TreeReduce(Transport& transport, std::span<const Tree> trees, const Combiner& combine,
                        ConstElements in, Elements work, size_t piece_bytes) {
  const Phase phase("reduce up");
  ConnectToAll(transport, trees);
  const auto tasks = TasksOf(trees, in, piece_bytes, transport.workspace());
  for (const auto& [tree, piece] : tasks) {
    if (tree->parent >= 0 && SendsAhead(*tree, trees))
      transport.PostSend(tree->parent, in.Slice(piece.offset, piece.count).bytes());
  }
  for (const auto& [tree, piece] : tasks) {
    if (SendsAhead(*tree, trees)) continue;
    ConstElements values = in.Slice(piece.offset, piece.count);
    for (auto child = tree->children.rbegin(); child != tree->children.rend(); ++child) {
      const Elements result = work.Slice(piece.offset, piece.count);
      RM_RETURN_IF_ERROR(
          transport.Wait(transport.PostCombine(*child, {combine, values.bytes(), result.bytes()})));
      values = result;
    }
    if (tree->parent >= 0) transport.PostSend(tree->parent, values.bytes());
  }
  return absl::OkStatus();
}

// The result of a piece contains what this rank sent of it, and so comes after.
absl::Status TreeAllreduce(Transport& transport, std::span<const Tree> trees,
                           const Combiner& combine, ConstElements in, Elements out,
                           size_t piece_bytes) {
  RM_RETURN_IF_ERROR(TreeReduce(transport, trees, combine, in, out, piece_bytes));
  return TreeBroadcast(transport, trees, out, piece_bytes);
}

absl::Status DisseminationBarrier(Transport& transport) {
  const int world = transport.world();
  const int rank = transport.rank();
  for (int step = 1; step < world; step *= 2) transport.Connect(RingRank(rank, step, world));
  for (int step = 1; step < world; step *= 2) {
    transport.PostSend(RingRank(rank, step, world), {});
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(RingRank(rank, -step, world), {})));
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives

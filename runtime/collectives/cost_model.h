// What an algorithm is expected to cost, from a few numbers about the links.
//
// The alpha-beta model with a combining term (Hockney 1994; Thakur, Rabenseifner and Gropp 2005;
// the overhead is that of LogGP, Alexandrov et al. 1995): a message of n bytes takes alpha + n beta
// from end to end, its sender can send the next after `overhead` + n beta, and combining n bytes
// takes n gamma. Links within a node and between nodes have numbers of their own; ranks of one node
// share its link to the others.
//
// Pure functions of their arguments: ranks that hold the same numbers choose alike. Times in
// seconds.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COST_MODEL_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COST_MODEL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/collectives/algorithm.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

struct LinkCost {
  double alpha = 0;     // of a message without bytes
  double overhead = 0;  // of which the sender is busy
  double beta = 0;      // of each byte
  // By how much two ranks' sum of a megabyte takes longer over a connection in two exchanges of
  // halves than in one of everything, beside what the other numbers say: the first exchange leaves
  // them out of step, and who is early waits for who is late. Less than nothing where it does not,
  // and halves stay in the cache.
  double turn = 0;
  // What part of beta a byte takes for each further rank which the same is for: in shared memory it
  // is written once, and only read again.
  double again = 1;
  // By how much a sum of a megabyte of a node's ranks, a power of two, takes longer by halves over
  // connections than by the direct way or the ring, whichever would be taken instead, beside what
  // the other numbers say. Less than nothing where it is quicker to talk to one rank at a time.
  double halves = 0;
};

struct CostModel {
  // Half of what a byte takes through shared memory is its writing.
  static constexpr double kReadAgain = 0.5;

  // Before anything is measured: shared memory, a network of 10 Gbit/s, and a core that streams 10
  // GB/s.
  LinkCost within{.alpha = 1e-6, .overhead = 0.3e-6, .beta = 0.2e-9, .again = kReadAgain};
  LinkCost between{25e-6, 4e-6, 0.8e-9};
  double gamma = 0.1e-9;
};

// `world` ranks on `nodes` nodes, as evenly as can be, rank after rank.
struct Shape {
  int world = 1;
  int nodes = 1;

  int per_node() const { return (world + nodes - 1) / nodes; }
  bool operator==(const Shape&) const = default;
};

// What the algorithm needs for an operation of `bytes` (of the whole array), which must be one of
// AlgorithmsOf(kind); infinite where it makes no sense: two-level without several nodes of several
// ranks. An ordered sum is taken as one of a shard from each rank. `segment_bytes` as
// CommunicatorOptions'.
double Predict(const CostModel& model, OperationKind kind, Algorithm algorithm, size_t bytes,
               Shape shape, size_t segment_bytes);

struct Estimate {
  Algorithm algorithm = Algorithm::kAuto;
  double seconds = 0;
};

// All algorithms of an operation, the fastest first; of equals, the one that AlgorithmsOf lists
// first.
std::vector<Estimate> Rank(const CostModel& model, OperationKind kind, size_t bytes, Shape shape,
                           size_t segment_bytes);

// What a two-level allreduce of `bytes` takes between the nodes, and how long that is.
Estimate BetweenNodes(const CostModel& model, size_t bytes, Shape shape, size_t segment_bytes);

// The bytes of a chunk that goes through both levels of an allreduce by itself: a segment for each
// step between the nodes, so that the next chunk begins early and no link waits for long.
size_t TwoLevelChunkBytes(int nodes, int per_node, size_t segment_bytes);

// The bytes of a piece that goes straight to the rank which combines it: a segment. Of ranks that
// share memory a piece for each of the others is a segment together, in whole pages and at least
// 16 KB each, so that the rings between ranks hold what is sent ahead; of two three quarters of a
// segment, which with what comes of it stays in a processor's own cache.
size_t DirectPieceBytes(const CostModel& model, Shape shape, size_t segment_bytes);

// The bytes of a piece that flows down or up a tree: small enough that the levels work at once.
size_t TreePieceBytes(size_t bytes, size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COST_MODEL_H_

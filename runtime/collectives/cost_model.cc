#include "runtime/collectives/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ringmaster::collectives {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kLeastTreePiece = 8 * 1024;
constexpr size_t kTreePieces = 16;
constexpr size_t kLeastDirectPiece = 16 * 1024;
constexpr size_t kPage = 4096;

// LinkCost::turn is of two exchanges of half this, and is not counted beyond it (of the powers of
// two, by which sizes are chosen for): a result that goes through memory twice costs more there.
constexpr double kTurnBytes = 1024 * 1024;

// LinkCost::halves is of so much, and is not counted beyond the other (of the powers of two): what
// decides there is memory.
constexpr double kHalvesBytes = 1024 * 1024;
constexpr double kMostHalvesBytes = 4 * kHalvesBytes;

// Arrays up to this (of the powers of two, by which sizes are chosen for) are passed on from one
// level of a schedule to the next in the processors' caches; longer ones go to memory and back.
constexpr double kCachedBytes = 16 * 1024 * 1024;

// Numbers of one question, and what all formulas share.
struct Costs {
  const CostModel& model;
  Shape shape;
  double bytes;
  double segment;

  int world() const { return shape.world; }
  bool spans_nodes() const { return shape.nodes > 1; }
  int levels() const { return static_cast<int>(std::bit_width(unsigned(world()) - 1)); }
  int floor_levels() const { return static_cast<int>(std::bit_width(unsigned(world()))) - 1; }
  bool is_power() const { return std::has_single_bit(static_cast<unsigned>(world())); }

  // The link of an exchange in which every rank talks to the one `distance` away, its bytes as dear
  // as they are when all ranks of a node do that at once.
  LinkCost At(int distance) const {
    if (!spans_nodes()) return model.within;
    const int per_node = shape.per_node();
    if (distance < static_cast<int>(std::bit_floor(static_cast<unsigned>(per_node))))
      return model.within;
    LinkCost link = model.between;
    link.beta *= std::min(distance, per_node);
    return link;
  }
  // The slowest link that a message to anybody takes, where one rank of a node talks at a time.
  LinkCost Worst() const { return spans_nodes() ? model.between : model.within; }

  double Combined(double count) const { return count * model.gamma; }
  // The same where the whole is combined before any of it is passed on.
  double CombinedWhole(double count) const {
    return Combined(count) * (bytes > kCachedBytes ? 3 : 1);
  }
};

double Message(const LinkCost& link, double bytes) {
  return link.alpha + bytes * link.beta;
}

// Ranks beyond a power of two lend their values to a neighbour and get the result back.
double Fold(const Costs& c) {
  if (c.is_power()) return 0;
  return 2 * Message(c.At(1), c.bytes) + c.CombinedWhole(c.bytes);
}

double Doubling(const Costs& c) {
  double time = Fold(c);
  for (int step = 0; step < c.floor_levels(); ++step)
    time += Message(c.At(1 << step), c.bytes) + c.CombinedWhole(c.bytes);
  return time;
}

// The nearest first, who get the largest halves; and back the same way.
double HalvingDoubling(const Costs& c) {
  double time = Fold(c);
  double part = c.bytes;
  for (int step = 0; step < c.floor_levels(); ++step) {
    part /= 2;
    time += 2 * Message(c.At(1 << step), part) + c.CombinedWhole(part);
  }
  return time;
}

// Where a chunk has several pieces, the next step begins while they flow; the slowest link paces
// all.
double RingStep(const Costs& c, const LinkCost& link, double chunk, double gamma) {
  const double piece = std::min(chunk, c.segment);
  return std::max(chunk * (link.beta + gamma), link.alpha + piece * (link.beta + gamma));
}

// A chunk's way around: most of it within the nodes, where there are several ranks on each.
LinkCost RingLink(const Costs& c) {
  if (!c.spans_nodes()) return c.model.within;
  const double crossing = static_cast<double>(c.shape.nodes) / c.world();
  LinkCost link = c.model.between;
  link.alpha = crossing * link.alpha + (1 - crossing) * c.model.within.alpha;
  link.beta = std::max(link.beta, c.model.within.beta);
  return link;
}

double RingHalf(const Costs& c, double gamma) {
  return (c.world() - 1) * RingStep(c, RingLink(c), c.bytes / c.world(), gamma);
}

// The bytes that a rank sends where each has a part for each other, or the same one for all.
enum class Parts { kOwn, kSame };

// Each rank sends a part to each other: one after another out of its port, and of its node.
double DirectHalf(const Costs& c, double gamma, Parts parts) {
  const int others = c.world() - 1;
  LinkCost link = c.Worst();
  const double part = c.bytes / c.world();
  const double further = parts == Parts::kSame ? link.again : 1;
  double bytes = part * (1 + (others - 1) * further);
  if (c.spans_nodes()) bytes = (c.world() - c.shape.per_node()) * part * c.shape.per_node();
  return link.alpha + (others - 1) * link.overhead + bytes * link.beta + others * part * gamma;
}

// A part to be combined by each rank, and back.
double Direct(const Costs& c) {
  return DirectHalf(c, c.model.gamma, Parts::kOwn) + DirectHalf(c, 0, Parts::kSame);
}

// As if what each rank sends to each other, which is all it has, were the part of a longer array.
double OneShot(const Costs& c) {
  return DirectHalf({c.model, c.shape, c.bytes * c.world(), c.segment}, c.model.gamma,
                    Parts::kSame);
}

// The root has log2(W) children, to which all bytes go one after another; the farthest is as many
// messages away, rounded down.
double TreeHalf(const Costs& c, double gamma) {
  double time = 0;
  for (int step = 0; step < c.levels(); ++step) {
    const LinkCost link = c.At(1 << step);
    time += (step < c.floor_levels() ? link.alpha : 0) + c.bytes * (link.beta + gamma);
  }
  return time;
}

// Two trees of half the bytes each; a rank is inner in one of them, with two children. Pieces
// follow one another, so only the first pays for the depth.
double DoubleTreeHalf(const Costs& c, double gamma) {
  const double piece =
      static_cast<double>(TreePieceBytes(static_cast<size_t>(c.bytes / 2), size_t(c.segment)));
  const double first = std::min(piece, c.bytes / 2);
  const double children = std::min(2, c.world() - 1);
  double time = 0;
  for (int step = 0; step < c.levels(); ++step) {
    const LinkCost link = c.At(1 << step);
    time += link.alpha + children * first * (link.beta + gamma);
  }
  const LinkCost link = c.Worst();
  const double rounds = std::max(0.0, std::ceil(c.bytes / 2 / std::max(1.0, piece)) - 1);
  return time + rounds * std::max(children * piece * (link.beta + gamma), 3 * link.overhead);
}

// How a two-level allreduce cuts the array.
struct Chunks {
  double count;
  Costs each;
};
Chunks ChunksOf(const Costs& c) {
  const double largest = static_cast<double>(
      TwoLevelChunkBytes(c.shape.nodes, c.shape.per_node(), static_cast<size_t>(c.segment)));
  const double count = std::max(1.0, std::ceil(c.bytes / largest));
  return {count, {c.model, c.shape, c.bytes / count, c.segment}};
}

// Between the nodes each slice of a chunk is combined by ranks of its own; all slices go over a
// node's link at once.
Estimate Between(const Costs& chunk) {
  const int inside = chunk.shape.per_node();
  CostModel shared = chunk.model;
  shared.between.beta *= inside;
  const Costs far{
      shared, {chunk.shape.nodes, chunk.shape.nodes}, chunk.bytes / inside, chunk.segment};
  Estimate best{Algorithm::kDoubling, Doubling(far)};
  const double halving = HalvingDoubling(far);
  if (halving < best.seconds) best = {Algorithm::kHalvingDoubling, halving};
  const double ring = RingHalf(far, shared.gamma) + RingHalf(far, 0);
  if (ring < best.seconds) best = {Algorithm::kRing, ring};
  return best;
}

// Straight to the owners of slices inside each node, between the nodes, and straight back; the
// slower level paces all chunks, and the other is seen of one.
double TwoLevelAllreduce(const Costs& c) {
  const int inside = c.shape.per_node();
  if (!c.spans_nodes() || inside < 2) return kNever;
  const Chunks chunks = ChunksOf(c);
  const Costs local{c.model, {inside, 1}, chunks.each.bytes, c.segment};
  const double within = Direct(local);
  const double between = Between(chunks.each).seconds;
  return within + between + (chunks.count - 1) * std::max(within, between);
}

double TwoLevelBroadcast(const Costs& c) {
  const int inside = c.shape.per_node();
  if (!c.spans_nodes() || inside < 2) return kNever;
  const Costs local{c.model, {inside, 1}, c.bytes, c.segment};
  const Costs far{c.model, {c.shape.nodes, c.shape.nodes}, c.bytes, c.segment};
  return TreeHalf(far, 0) + TreeHalf(local, 0);
}

// Between two ranks these take the same steps; and the direct way, which of equals is the one that
// is taken, passes each piece on while the cache still has it.
bool IsDirect(const Costs& c, Algorithm algorithm) {
  return c.world() == 2 && (algorithm == Algorithm::kHalvingDoubling ||
                            algorithm == Algorithm::kRing || algorithm == Algorithm::kDoubleTree);
}

double SecondTurn(const Costs& c) {
  if (c.world() != 2 || c.bytes > kTurnBytes) return 0;
  return c.Worst().turn * c.bytes / kTurnBytes;
}

// Groups have the numbers of the ranks that they are made of; of one that folds nothing was
// measured.
double OneAtATime(const Costs& c) {
  if (!c.is_power() || c.bytes > kMostHalvesBytes) return 0;
  return c.Worst().halves * c.bytes / kHalvesBytes;
}

double PredictAllreduce(const Costs& c, Algorithm algorithm) {
  const double gamma = c.model.gamma;
  switch (IsDirect(c, algorithm) ? Algorithm::kDirect : algorithm) {
    case Algorithm::kDirect:
      return Direct(c) + SecondTurn(c);
    case Algorithm::kDoubling:
      return Doubling(c);
    case Algorithm::kOneShot:
      return OneShot(c);
    case Algorithm::kHalvingDoubling:
      return HalvingDoubling(c) + OneAtATime(c);
    case Algorithm::kRing:
      return RingHalf(c, gamma) + RingHalf(c, 0);
    case Algorithm::kTree:
      return TreeHalf(c, gamma) + TreeHalf(c, 0);
    case Algorithm::kDoubleTree:
      return DoubleTreeHalf(c, gamma) + DoubleTreeHalf(c, 0);
    case Algorithm::kTwoLevel:
      return TwoLevelAllreduce(c);
    default:
      return kNever;
  }
}

double PredictReduce(const Costs& c, Algorithm algorithm) {
  const double gamma = c.model.gamma;
  switch (algorithm) {
    case Algorithm::kTree:
      return TreeHalf(c, gamma);
    case Algorithm::kDoubleTree:
      return DoubleTreeHalf(c, gamma);
    case Algorithm::kRing:  // and the root gathers the chunks
      return RingHalf(c, gamma) + c.Worst().alpha + c.bytes * c.Worst().beta;
    default:
      return kNever;
  }
}

double PredictBroadcast(const Costs& c, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTree:
      return TreeHalf(c, 0);
    case Algorithm::kDoubleTree:
      return DoubleTreeHalf(c, 0);
    case Algorithm::kTwoLevel:
      return TwoLevelBroadcast(c);
    default:
      return kNever;
  }
}

// One node of the shard tree after another, with a shard of each rank's: where a side has fewer
// ranks than the other, each of these swaps parts with several. Of a power of two ranks it is
// recursive halving and doubling.
double OrderedHalving(const Costs& c) {
  double time = 0;
  for (int ranks = c.world(); ranks > 1;) {
    const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
    const int right = ranks - left;
    const LinkCost link = c.At(left);
    const int messages = (left + right - 1) / right;
    const double added = c.bytes / ranks, out = c.bytes / right - added;
    time += 2 * (Message(link, out) + (messages - 1) * link.overhead) + c.CombinedWhole(added);
    ranks = left;
  }
  return time;
}

// Of the ranks' parts that one rank adds, half wait for their turn in the tree's order; they are
// copied, which takes about as long as adding them would. Between nodes that is done while further
// ones are on their way.
double Kept(const Costs& c, double part) {
  const int kept = c.spans_nodes() ? 0 : (c.world() - 1) / 2;
  return kept * c.Combined(part);
}

// Who has which shards is told once, which counts for nothing in the many sums of a round.
double PredictOrderedSum(const Costs& c, Algorithm algorithm) {
  switch (IsDirect(c, algorithm) ? Algorithm::kDirect : algorithm) {
    case Algorithm::kDirect:
      return Direct(c) + Kept(c, c.bytes / c.world()) + SecondTurn(c);
    case Algorithm::kOneShot:
      return OneShot(c) + Kept(c, c.bytes);
    default:
      return OrderedHalving(c) + OneAtATime(c);
  }
}

}  // namespace

Estimate BetweenNodes(const CostModel& model, size_t bytes, Shape shape, size_t segment_bytes) {
  const Chunks chunks =
      ChunksOf({model, shape, static_cast<double>(bytes), static_cast<double>(segment_bytes)});
  Estimate estimate = Between(chunks.each);
  estimate.seconds *= chunks.count;
  return estimate;
}

size_t TwoLevelChunkBytes(int nodes, int per_node, size_t segment_bytes) {
  return static_cast<size_t>(nodes) * static_cast<size_t>(per_node) * segment_bytes;
}

size_t DirectPieceBytes(const CostModel& model, Shape shape, size_t segment_bytes) {
  if (shape.nodes > 1 || model.within.again == 1) return segment_bytes;
  const size_t piece = shape.world <= 2 ? segment_bytes / 4 * 3
                                        : segment_bytes / static_cast<size_t>(shape.world - 1);
  const size_t share = piece / kPage * kPage;
  return std::min(segment_bytes, std::max(kLeastDirectPiece, share));
}

size_t TreePieceBytes(size_t bytes, size_t segment_bytes) {
  return std::min(segment_bytes, std::max(kLeastTreePiece, bytes / kTreePieces));
}

double Predict(const CostModel& model, OperationKind kind, Algorithm algorithm, size_t bytes,
               Shape shape, size_t segment_bytes) {
  if (shape.world < 2) return 0;
  const Costs costs{model, shape, static_cast<double>(bytes), static_cast<double>(segment_bytes)};
  switch (kind) {
    case OperationKind::kAllreduce:
      return PredictAllreduce(costs, algorithm);
    case OperationKind::kReduce:
      return PredictReduce(costs, algorithm);
    case OperationKind::kBroadcast:
      return PredictBroadcast(costs, algorithm);
    case OperationKind::kOrderedSum:
      return PredictOrderedSum(costs, algorithm);
    default:
      return kNever;
  }
}

std::vector<Estimate> Rank(const CostModel& model, OperationKind kind, size_t bytes, Shape shape,
                           size_t segment_bytes) {
  std::vector<Estimate> estimates;
  for (const Algorithm algorithm : AlgorithmsOf(kind))
    estimates.push_back({algorithm, Predict(model, kind, algorithm, bytes, shape, segment_bytes)});
  std::stable_sort(estimates.begin(), estimates.end(),
                   [](const Estimate& a, const Estimate& b) { return a.seconds < b.seconds; });
  return estimates;
}

}  // namespace ringmaster::collectives

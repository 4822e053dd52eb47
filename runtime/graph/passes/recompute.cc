#include "runtime/graph/passes/recompute.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/device/memory.h"
#include "runtime/graph/arena.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/passes/uses.h"
#include "runtime/kernels/activation.h"

namespace ringmaster::graph {
namespace {

// Those that touch each of their elements a few times. (Not batch_norm_max_pool2d, which would look
// for the statistics once more.)
constexpr std::array<std::string_view, 32> kCheap = {
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "add",
    "avg_pool2d",
    "batch_norm",
    "batch_norm_inference",
    "batch_norm_synchronised",
    "concat",
    "copy",
    "divide",
    "dropout",
    "embedding",
    "exact_gelu",
    "gelu",
    "layer_norm",
    "linear_activation",  // of its results the activation alone
    "log_softmax",
    "max_over",
    "max_pool2d",
    "max_pool2d_taps",  // of its results what is pooled alone
    "multiply",
    "pad",
    "relu",
    "reorder",
    "scale",
    "sigmoid",
    "silu",
    "slice",
    "softmax",
    "subtract",
    "tanh",
    "transpose",
};

// What is dropped in one place can make another the fullest; for each node so often at most.
constexpr size_t kMostDrops = 4;

// Who reads what was just made again, or what that was made of, finds as much in a processor's last
// cache: half of the traffic to memory is saved.
constexpr size_t kCached = size_t{16} << 20;

// Of the bytes that a step's ops read and write, those that may be touched again unasked. Ops that
// wait for arithmetic instead of memory make it even less of the step's time.
constexpr double kUnasked = 0.02;

// Of convolutions' work in a step, what small ones may take that are computed again, asked for or
// not: their arithmetic is little, their images may be the largest of all.
constexpr double kForConvolutions = 0.005;
// What a core with AVX2 adds or multiplies while it reads or writes a byte of memory.
constexpr double kArithmeticPerByte = 12;

// A schedule of nodes, some of them twice. Values below the graph's number of values are the
// graph's.
class Schedule {
 public:
  Schedule(const Graph& graph, std::span<const size_t> scratch, const OutputBlock& block);

  // Bytes that are held at once, at most, and what an arena for them takes beside the block.
  size_t peak_bytes() const { return held_[peak_]; }
  size_t ArenaBytes() const;
  // What computing again may cost: bytes that ops read and write, and the work of convolutions, in
  // bytes that would take as long.
  struct Allowance {
    double touched, worked;
  };
  // Of all ops, and of all convolutions besides.
  Allowance Cost() const;
  // Drops one value during the step that holds most, for which no more than that is needed, and
  // takes it off. False where there is none to drop.
  bool DropOne(Allowance& left);

  Graph ToGraph() const;

 private:
  struct Item {
    int32_t node;
    std::string_view op;                   // the node's, or what stands for it
    std::vector<int32_t> inputs, outputs;  // values
    bool again = false;
  };
  // By item numbers; a value that nobody makes in the arena holds no bytes.
  struct Life {
    size_t bytes = 0;
    int32_t first = 0, last = 0;
    std::vector<int32_t> readers;
  };
  struct Choice {
    std::vector<int32_t> items;  // which to run again, in order,
    int32_t before = -1;         // and before which
    size_t saved = 0;
    Allowance cost{};  // bytes as they count
    double merit = 0;  // bytes saved for each one of the cost

    bool operator<(const Choice& other) const {
      return merit < other.merit || (merit == other.merit && saved < other.saved);
    }
  };

  const Node& NodeOf(const Item& item) const { return graph_.node(item.node); }
  // Whether the item computes only the activation of a linear_activation.
  bool IsPart(const Item& item) const {
    return NodeOf(item).op->type == "linear_activation" && item.op != "linear_activation";
  }
  size_t ScratchOf(const Item& item) const {
    return IsPart(item) ? 0 : scratch_[static_cast<size_t>(item.node)];
  }
  int32_t RootOf(int32_t value) const { return roots_[static_cast<size_t>(value)]; }
  const Life& LifeOf(int32_t value) const { return lives_[static_cast<size_t>(RootOf(value))]; }
  size_t BytesOf(int32_t value) const {
    return graph_.spec({like_[static_cast<size_t>(value)]}).bytes();
  }
  int32_t NewValue(int32_t like, int32_t root);
  void Measure();
  // One that is pooled or normalised at once counts as none: it is never made again.
  static bool IsConvolution(const Item& item) {
    return item.op == "conv2d" || item.op.starts_with("conv2d_grad_");
  }
  // In bytes that take as long.
  double ArithmeticOf(const Item& item) const;
  // Whose arithmetic takes hardly longer than writing its result, as with three channels before it.
  bool IsSmallConvolution(const Item& item) const;
  double BytesTouchedBy(const Item& item) const;
  bool IsCheap(const Item& item) const;
  // How an item would be run again behind the peak; of no merit where that saves nothing.
  Choice ChoiceFor(int32_t item) const;
  // Adds an item to the choice, after those that make what it reads and nobody holds any more.
  void AddAgain(int32_t item, Choice& choice) const;
  // What runs in the item's place. A batch norm keeps its statistics, a linear layer what its
  // activation is of.
  Item AgainOf(const Item& item) const;
  void Apply(const Choice& choice);
  // What stands for `value`, when `now` says what stands for those that are made again: itself, or
  // another alias, made by an item that is added to `made`.
  int32_t Redirected(int32_t value, std::map<int32_t, int32_t>& now, std::vector<Item>& made);
  // Takes out items that no output of the graph depends on.
  void Sweep();

  const Graph& graph_;
  const std::span<const size_t> scratch_;
  const OutputBlock& block_;
  std::vector<Item> items_;
  std::vector<int32_t> like_;   // by value: the graph's value that it equals
  std::vector<int32_t> roots_;  // by value: the one whose memory it uses
  std::vector<bool> is_held_;   // by value: whether its memory is the arena's
  std::vector<Life> lives_;     // by value
  std::vector<size_t> held_;    // by item: bytes
  size_t peak_ = 0;             // the item that holds most
  size_t drops_ = 0;
};

Schedule::Schedule(const Graph& graph, std::span<const size_t> scratch, const OutputBlock& block)
    : graph_(graph), scratch_(scratch), block_(block) {
  const Uses uses(graph);
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto value = static_cast<int32_t>(i);
    const int32_t producer = graph.values()[i].producer;
    const bool alias = producer >= 0 && graph.node(producer).op->alias;
    NewValue(value, alias ? RootOf(graph.node(producer).inputs[0].index) : value);
    is_held_.back() = producer >= 0 && !alias;
  }
  for (const NamedValue& output : graph.outputs())
    is_held_[static_cast<size_t>(output.value.index)] = false;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!uses.IsLive(static_cast<int32_t>(i))) continue;
    Item& item =
        items_.emplace_back(Item{.node = static_cast<int32_t>(i), .op = graph.nodes()[i].op->type});
    for (const ValueId id : graph.nodes()[i].inputs) item.inputs.push_back(id.index);
    for (const ValueId id : graph.nodes()[i].outputs) item.outputs.push_back(id.index);
  }
  Measure();
}

int32_t Schedule::NewValue(int32_t like, int32_t root) {
  const auto value = static_cast<int32_t>(roots_.size());
  like_.push_back(like);
  roots_.push_back(root);
  is_held_.push_back(root == value);
  return value;
}

void Schedule::Measure() {
  lives_.assign(roots_.size(), {});
  held_.assign(items_.size(), 0);
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (NodeOf(item).op->alias) continue;
    const auto now = static_cast<int32_t>(i);
    for (const int32_t output : item.outputs) {
      const auto v = static_cast<size_t>(output);
      const size_t bytes = graph_.spec({like_[v]}).bytes();
      lives_[v] = {.bytes = is_held_[v] ? device::AlignUp(bytes) : 0, .first = now, .last = now};
    }
    for (const int32_t input : item.inputs) {
      Life& life = lives_[static_cast<size_t>(RootOf(input))];
      life.last = now;
      life.readers.push_back(now);
    }
    held_[i] = device::AlignUp(ScratchOf(item));
  }
  for (const Life& life : lives_) {
    if (life.bytes == 0) continue;
    for (int32_t i = life.first; i <= life.last; ++i) held_[static_cast<size_t>(i)] += life.bytes;
  }
  peak_ = static_cast<size_t>(std::ranges::max_element(held_) - held_.begin());
}

// In the planner's order (graph/plan.cc), which decides among values of one size.
size_t Schedule::ArenaBytes() const {
  std::vector<Lifetime> lifetimes;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (NodeOf(items_[i]).op->alias) continue;
    for (const int32_t output : items_[i].outputs) {
      const Life& life = lives_[static_cast<size_t>(output)];
      if (life.bytes > 0) lifetimes.push_back({life.bytes, life.first, life.last});
    }
    const auto now = static_cast<int32_t>(i);
    lifetimes.push_back({ScratchOf(items_[i]), now, now});
  }
  Block block{.bytes = block_.bytes};
  for (const NamedValue& output : graph_.outputs()) {
    const auto place = block_.offsets.find(output.name);
    if (place == block_.offsets.end()) continue;
    block.tenants.push_back({.offset = place->second,
                             .life = {.bytes = graph_.spec(output.value).bytes(),
                                      .first = LifeOf(output.value.index).first,
                                      .last = static_cast<int32_t>(items_.size())}});
  }
  return PlanArena(lifetimes, /*reuse=*/true, block).bytes;
}

bool Schedule::IsCheap(const Item& item) const {
  return std::ranges::find(kCheap, NodeOf(item).op->type) != kCheap.end();
}

// Of a convolution on any of the three ways: each pixel of the result meets all taps of all its
// channels.
double Schedule::ArithmeticOf(const Item& item) const {
  const bool makes_weight = item.op == "conv2d_grad_weight", makes_image = item.op == "conv2d";
  const auto shape_of = [&](int32_t value) -> const Shape& {
    return graph_.spec({like_[static_cast<size_t>(value)]}).shape;
  };
  const Shape& weight = shape_of(makes_weight ? item.outputs[0] : item.inputs[1]);
  const Shape& result = shape_of(makes_image ? item.outputs[0] : item.inputs[makes_weight ? 1 : 0]);
  return 2 * static_cast<double>(result.elements()) * static_cast<double>(weight.Product(1, 4)) /
         kArithmeticPerByte;
}

bool Schedule::IsSmallConvolution(const Item& item) const {
  return item.op == "conv2d" &&
         ArithmeticOf(item) <= 2 * static_cast<double>(BytesOf(item.outputs[0]));
}

double Schedule::BytesTouchedBy(const Item& item) const {
  double bytes = 0;
  for (const int32_t input : item.inputs) bytes += static_cast<double>(BytesOf(input));
  for (const int32_t output : item.outputs) bytes += static_cast<double>(BytesOf(output));
  return bytes;
}

Schedule::Choice Schedule::ChoiceFor(int32_t index) const {
  const Item& item = items_[static_cast<size_t>(index)];
  const Life& life = LifeOf(item.outputs[0]);
  const auto peak = static_cast<int32_t>(peak_);
  if (life.bytes == 0 || life.first >= peak || life.last <= peak) return {};
  if (!IsCheap(item) && !IsSmallConvolution(item)) return {};
  const auto reader = std::ranges::lower_bound(life.readers, peak);
  if (*reader == peak) return {};
  Choice choice{.before = *reader, .saved = life.bytes};
  AddAgain(index, choice);
  choice.merit = static_cast<double>(choice.saved) / (choice.cost.touched + choice.cost.worked);
  return choice;
}

void Schedule::AddAgain(int32_t index, Choice& choice) const {
  const Item& item = items_[static_cast<size_t>(index)];
  std::vector<int32_t> seen;
  const size_t bytes = LifeOf(item.outputs[0]).bytes;
  const double weight = bytes <= kCached ? 0.5 : 1.0;
  const Item again = AgainOf(item);
  const auto touch = [&](double count) {
    (IsConvolution(item) ? choice.cost.worked : choice.cost.touched) += weight * count;
  };
  if (IsConvolution(item)) choice.cost.worked += ArithmeticOf(item);
  touch(static_cast<double>(bytes));
  for (const int32_t input : again.inputs) {
    const int32_t root = RootOf(input);
    touch(static_cast<double>(BytesOf(input)));
    const Life& life = LifeOf(input);
    if (life.bytes == 0 || life.last >= choice.before) continue;
    if (std::ranges::find(seen, root) != seen.end()) continue;
    seen.push_back(root);
    const Item& maker = items_[static_cast<size_t>(life.first)];
    if (!IsCheap(maker) || maker.outputs[0] != root) {
      choice.saved -= std::min(choice.saved, life.bytes);  // it would be held longer
    } else if (std::ranges::find(choice.items, life.first) == choice.items.end()) {
      AddAgain(life.first, choice);
    }
  }
  choice.items.push_back(index);
}

Schedule::Allowance Schedule::Cost() const {
  Allowance all{};
  for (const Item& item : items_) {
    if (NodeOf(item).op->alias) continue;
    all.touched += BytesTouchedBy(item);
    if (IsConvolution(item)) all.worked += BytesTouchedBy(item) + ArithmeticOf(item);
  }
  return all;
}

bool Schedule::DropOne(Allowance& left) {
  Choice best;
  for (int32_t i = 0; i < static_cast<int32_t>(peak_); ++i) {
    Choice choice = ChoiceFor(i);
    const bool fits = choice.cost.touched <= left.touched && choice.cost.worked <= left.worked;
    if (best < choice && fits) best = std::move(choice);
  }
  if (best.saved == 0 || drops_ == kMostDrops * graph_.nodes().size()) return false;
  ++drops_;
  left.touched -= best.cost.touched;
  left.worked -= best.cost.worked;
  Apply(best);
  Measure();
  return true;
}

int32_t Schedule::Redirected(int32_t value, std::map<int32_t, int32_t>& now,
                             std::vector<Item>& made) {
  if (const auto found = now.find(value); found != now.end()) return found->second;
  if (!now.contains(RootOf(value))) return value;
  Item alias = *std::ranges::find_if(
      items_, [&](const Item& item) { return item.outputs.front() == value; });
  alias.inputs = {Redirected(alias.inputs[0], now, made)};
  alias.outputs = {NewValue(like_[static_cast<size_t>(value)], RootOf(alias.inputs[0]))};
  alias.again = true;
  now.emplace(value, alias.outputs[0]);
  made.push_back(alias);
  return alias.outputs[0];
}

Schedule::Item Schedule::AgainOf(const Item& item) const {
  Item again = item;
  again.again = true;
  if (item.op == "linear_activation") {
    again.op = kernels::OpOf(kernels::ActivationIn(NodeOf(item).attributes));
    again.inputs = {item.outputs[1]};
    again.outputs = {item.outputs[0]};
    return again;
  }
  if (item.op != "batch_norm") return again;
  again.op = "batch_norm_again";
  again.inputs = {item.inputs[0], item.inputs[1], item.inputs[2], item.outputs[1], item.outputs[2]};
  again.inputs.insert(again.inputs.end(), item.inputs.begin() + 3, item.inputs.end());
  again.outputs = {item.outputs[0]};
  return again;
}

void Schedule::Apply(const Choice& choice) {
  std::vector<Item> made;
  std::map<int32_t, int32_t> now;
  for (const int32_t index : choice.items) {
    Item again = AgainOf(items_[static_cast<size_t>(index)]);
    for (int32_t& input : again.inputs) input = Redirected(input, now, made);
    for (int32_t& output : again.outputs) {
      const auto value = static_cast<int32_t>(roots_.size());
      NewValue(like_[static_cast<size_t>(output)], value);
      if (&output == &again.outputs[0]) now.emplace(output, value);
      output = value;
    }
    made.push_back(std::move(again));
  }
  for (size_t i = static_cast<size_t>(choice.before); i < items_.size(); ++i) {
    if (NodeOf(items_[i]).op->alias) continue;  // whoever reads it is redirected
    for (size_t k = 0; k < items_[i].inputs.size(); ++k)
      items_[i].inputs[k] = Redirected(items_[i].inputs[k], now, made);
  }
  items_.insert(items_.begin() + choice.before, made.begin(), made.end());
  Sweep();
}

void Schedule::Sweep() {
  std::vector<bool> used(roots_.size(), false);
  for (const NamedValue& output : graph_.outputs())
    used[static_cast<size_t>(output.value.index)] = true;
  const auto is_used = [&](int32_t value) { return used[static_cast<size_t>(value)]; };
  std::vector<Item> kept;
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (std::ranges::none_of(item->outputs, is_used)) continue;
    for (const int32_t input : item->inputs) used[static_cast<size_t>(input)] = true;
    kept.push_back(std::move(*item));
  }
  std::ranges::reverse(kept);
  items_ = std::move(kept);
}

Graph Schedule::ToGraph() const {
  Rewriter rewriter(graph_);
  std::vector<ValueId> now(roots_.size());
  for (size_t i = 0; i < graph_.values().size(); ++i)
    now[i] = rewriter.Of(ValueId{static_cast<int32_t>(i)});
  for (const Item& item : items_) {
    const Node& node = NodeOf(item);
    std::vector<ValueId> inputs;
    for (const int32_t input : item.inputs) inputs.push_back(now[static_cast<size_t>(input)]);
    const bool is_part = IsPart(item);
    const std::string part = is_part ? fmt::format(".{}", item.op) : "";
    const std::vector<ValueId> outputs =
        rewriter.to().Add(item.op, is_part ? kernels::Attributes() : node.attributes, inputs,
                          static_cast<int>(item.outputs.size()),
                          item.again ? fmt::format("again/{}{}", node.name, part) : node.name);
    for (size_t i = 0; i < outputs.size(); ++i) {
      now[static_cast<size_t>(item.outputs[i])] = outputs[i];
      if (!item.again) rewriter.Map(node.outputs[i], outputs[i]);
    }
  }
  return rewriter.Finish();
}

}  // namespace

Graph Recompute(const Graph& graph, std::span<const size_t> scratch,
                const CompileOptions& options) {
  Schedule schedule(graph, scratch, options.block);
  const bool is_much = schedule.ArenaBytes() > options.recompute_from;
  const Schedule::Allowance cost = schedule.Cost();
  Schedule::Allowance left{kUnasked * cost.touched, kForConvolutions * cost.worked};
  while (is_much && schedule.DropOne(left)) {
  }
  const size_t budget = options.memory_budget;
  if (budget == 0) return schedule.ToGraph();
  left.touched = std::numeric_limits<double>::infinity();
  while ((schedule.peak_bytes() > budget + options.block.bytes || schedule.ArenaBytes() > budget) &&
         schedule.DropOne(left)) {
  }
  return schedule.ToGraph();
}

}  // namespace ringmaster::graph

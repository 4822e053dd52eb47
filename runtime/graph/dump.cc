#include "runtime/graph/dump.h"

#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/plan.h"

namespace ringmaster::graph {
namespace {

// For a label between quotes.
std::string DotEscaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

// By node: lines for its box, beside its name and op. Nodes that are not in it are left out.
using Notes = std::map<int32_t, std::string>;

class DotWriter {
 public:
  DotWriter(const Graph& graph, const Notes& notes) : graph_(graph), notes_(notes) {}

  std::string Write() {
    text_ = "digraph {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n";
    bool backward = false;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      backward = backward || graph_.nodes()[i].name.starts_with(kGradientPrefix);
      AddNode(static_cast<int32_t>(i), backward);
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) AddOutput(i);
    return text_ + "}\n";
  }

 private:
  void AddNode(int32_t index, bool backward) {
    const auto note = notes_.find(index);
    if (note == notes_.end()) return;
    const Node& node = graph_.node(index);
    std::string label = fmt::format("{}\n{}", node.name, node.op->type);
    if (const std::string attributes = node.attributes.ToString(); !attributes.empty())
      label += "\n" + attributes;
    if (!note->second.empty()) label += "\n" + note->second;
    text_ += fmt::format("  n{} [label=\"{}\", fillcolor=\"{}\"];\n", index, DotEscaped(label),
                         backward ? "#fde3c8" : "#d3e5f7");
    for (const ValueId input : node.inputs) AddEdge(input, fmt::format("n{}", index));
  }

  void AddOutput(size_t index) {
    const NamedValue& output = graph_.outputs()[index];
    text_ += fmt::format("  o{} [label=\"{}\", shape=ellipse, fillcolor=\"#d9f0d3\"];\n", index,
                         DotEscaped(output.name));
    AddEdge(output.value, fmt::format("o{}", index));
  }

  void AddEdge(ValueId from, const std::string& to) {
    const Value& value = graph_.value(from);
    std::string source = fmt::format("n{}", value.producer);
    if (value.producer < 0) {
      source = fmt::format("v{}", from.index);
      if (!declared_[from.index]) {
        text_ += fmt::format("  {} [label=\"{}\", shape=ellipse, fillcolor=\"#eeeeee\"];\n", source,
                             DotEscaped(value.name));
        declared_[from.index] = true;
      }
    }
    text_ += fmt::format("  {} -> {} [label=\"{}\"];\n", source, to, value.spec.ToString());
  }

  const Graph& graph_;
  const Notes& notes_;
  std::map<int32_t, bool> declared_;  // by value from outside
  std::string text_;
};

std::string Bytes(size_t bytes) {
  return WithCommas(static_cast<int64_t>(bytes));
}

std::string TextOf(const Place& place) {
  return Bytes(place.offset) + (place.in_block ? " of the outputs' block" : "");
}

class PlanWriter {
 public:
  explicit PlanWriter(const Plan& plan) : graph_(plan.graph), plan_(plan) {
    for (const NamedValue& output : graph_.outputs())
      outputs_.emplace(output.value.index, output.name);
  }

  Dump Write() {
    std::string text = fmt::format("arena: {} bytes, {} without reuse\n", Bytes(plan_.arena.bytes),
                                   Bytes(plan_.bytes_without_reuse));
    text += Reorders() + ReordersWithin();
    Notes notes = NotesOfAliases();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const PlannedStep& step = plan_.steps[i];
      const Node& node = graph_.node(step.node);
      std::string lines = fmt::format("step {} by {}", i, step.primitive->name());
      text += fmt::format("{} {}: {} by {}\n", i, node.name, node.op->type, step.primitive->name());
      for (const std::string& place : PlacesOf(step)) {
        lines += "\n" + place;
        text += "    " + place + "\n";
      }
      notes[step.node] = lines;
    }
    return {.text = std::move(text), .dot = DotWriter(graph_, notes).Write()};
  }

 private:
  std::string Reorders() const {
    int count = 0;
    size_t bytes = 0;
    std::string lines;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Node& node = graph_.node(plan_.steps[i].node);
      if (node.op->type != "reorder") continue;
      const ValueSpec &from = graph_.spec(node.inputs[0]), &to = graph_.spec(node.outputs[0]);
      ++count;
      bytes += to.bytes();
      lines += fmt::format("    {} {}: {} to {}\n", i, node.name, from.ToString(), to.ToString());
    }
    return Counted("reorders of images", count, bytes, lines);
  }

  // A library's convolution wants its operands in its own layout, and copies them where they are in
  // another.
  std::string ReordersWithin() const {
    int count = 0;
    size_t bytes = 0;
    std::string lines;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const size_t of_step = plan_.steps[i].primitive->reordered_bytes();
      if (of_step == 0) continue;
      ++count;
      bytes += of_step;
      const Node& node = graph_.node(plan_.steps[i].node);
      lines += fmt::format("    {} {}: {} bytes\n", i, node.name, Bytes(of_step));
    }
    return Counted("reorders of images within other steps", count, bytes, lines);
  }

  std::string Counted(std::string_view what, int count, size_t bytes,
                      const std::string& lines) const {
    if (count == 0) return fmt::format("{}: none\n", what);
    return fmt::format("{}: {} of {} steps, {} bytes written\n{}", what, count, plan_.steps.size(),
                       Bytes(bytes), lines);
  }

  // They are no steps, but without them the others would not hang together.
  Notes NotesOfAliases() const {
    std::vector<bool> read(graph_.values().size(), false);
    const auto mark = [&](const Node& node) {
      for (const ValueId input : node.inputs) read[static_cast<size_t>(input.index)] = true;
    };
    for (const PlannedStep& step : plan_.steps) mark(graph_.node(step.node));
    Notes notes;
    for (auto i = static_cast<int32_t>(graph_.nodes().size()) - 1; i >= 0; --i) {
      const Node& node = graph_.node(i);
      if (!node.op->alias || !read[static_cast<size_t>(node.outputs[0].index)]) continue;
      mark(node);
      notes[i] = "no step";
    }
    return notes;
  }

  std::string PlaceOf(ValueId id) const {
    const int32_t root = plan_.roots[static_cast<size_t>(id.index)];
    const auto output = outputs_.find(root);
    if (output == outputs_.end()) {
      return fmt::format("{}at {}", root == id.index ? "" : "in place ",
                         TextOf(plan_.places[static_cast<size_t>(root)]));
    }
    return fmt::format("{} output {}", root == id.index ? "is" : "in the place of", output->second);
  }

  std::vector<std::string> PlacesOf(const PlannedStep& step) const {
    std::vector<std::string> places;
    for (const ValueId id : graph_.node(step.node).outputs) {
      const ValueSpec& spec = graph_.spec(id);
      places.push_back(fmt::format("{} {} {} ({} bytes)", Reference(graph_, id), spec.ToString(),
                                   PlaceOf(id), Bytes(spec.bytes())));
    }
    if (const size_t scratch = step.primitive->scratch_bytes(); scratch > 0) {
      places.push_back(
          fmt::format("scratch at {} ({} bytes)", TextOf(step.scratch), Bytes(scratch)));
    }
    return places;
  }

  const Graph& graph_;
  const Plan& plan_;
  std::map<int32_t, std::string> outputs_;  // by value
};

}  // namespace

std::string ToDot(const Graph& graph) {
  Notes notes;
  for (size_t i = 0; i < graph.nodes().size(); ++i) notes[static_cast<int32_t>(i)] = "";
  return DotWriter(graph, notes).Write();
}

absl::StatusOr<Dump> DumpPlan(const Graph& graph, const CompileOptions& options,
                              std::vector<PassDump>* passes) {
  PassObserver observer;
  if (passes != nullptr) {
    observer = [&](std::string_view pass, const Graph& made) {
      passes->push_back({std::string(pass), {.text = ToString(made), .dot = ToDot(made)}});
    };
  }
  RM_ASSIGN_OR_RETURN(const Plan plan, MakePlan(graph, options, observer));
  return PlanWriter(plan).Write();
}

}  // namespace ringmaster::graph

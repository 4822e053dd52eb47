#include "runtime/collectives/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "runtime/collectives/selector.h"

namespace ringmaster::collectives::explain {
namespace {

constexpr double kMicro = 1e6;
constexpr double kNano = 1e9;
constexpr int kSizeWidth = 10;
constexpr int kNameWidth = 16;

// Ranks 0, 1, ... of a node, then those of the next.
NodeMap MapOf(Shape shape) {
  std::vector<std::string> machines;
  for (int rank = 0; rank < shape.world; ++rank)
    machines.push_back(fmt::format("node {}", rank / shape.per_node()));
  return NodeMap(machines);
}

Selector SelectorOf(const Question& q) {
  return Selector(MapOf(q.shape), q.model, q.segment_bytes, q.forced);
}

double Microseconds(const Question& q, Algorithm algorithm, size_t bytes) {
  return kMicro * Predict(q.model, q.kind, algorithm, bytes, q.shape, q.segment_bytes);
}

std::string TimeOf(const Question& q, Algorithm algorithm, size_t bytes) {
  const double time = Microseconds(q, algorithm, bytes);
  return std::isfinite(time) ? fmt::format("{:.1f}", time) : "-";
}

std::string Describe(const char* where, const LinkCost& link) {
  const std::string turn =
      link.turn > 0 ? fmt::format(", {:.2f} us before a second exchange", link.turn * kMicro) : "";
  const std::string again = link.again < 1
                                ? fmt::format(", {:.3f} for each further rank that it is for",
                                              link.again * link.beta * kNano)
                                : "";
  const std::string halves =
      link.halves != 0
          ? fmt::format(", {:.2f} us {} for a megabyte by halves", std::abs(link.halves) * kMicro,
                        link.halves > 0 ? "more" : "less")
          : "";
  return fmt::format(
      "{}: {:.2f} us a message, of which {:.2f} keep the sender busy, and {:.3f} ns "
      "a byte ({:.1f} Gbit/s){}{}{}\n",
      where, link.alpha * kMicro, link.overhead * kMicro, link.beta * kNano,
      8 / (link.beta * kNano), turn, again, halves);
}

nlohmann::ordered_json ToJson(const LinkCost& link) {
  return {{"alphaMicroseconds", link.alpha * kMicro},
          {"overheadMicroseconds", link.overhead * kMicro},
          {"betaNanosecondsPerByte", link.beta * kNano},
          {"againNanosecondsPerByte", link.again * link.beta * kNano},
          {"turnMicroseconds", link.turn * kMicro},
          {"halvesMicroseconds", link.halves * kMicro}};
}

}  // namespace

std::string NameOf(OperationKind kind) {
  std::string name = OperationKindName(kind);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string Table(const Question& q) {
  const Selector selector = SelectorOf(q);
  std::string text = fmt::format(
      "{}, {} on {}; {}{}\n", NameOf(q.kind), WithNoun(q.shape.world, "rank"),
      WithNoun(q.shape.nodes, "node"), q.source,
      q.forced == Algorithm::kAuto ? "" : fmt::format("; forced: {}", NameOf(q.forced)));
  text += Describe("within a node", q.model.within);
  if (q.shape.nodes > 1) text += Describe("between nodes", q.model.between);
  text += fmt::format("combining: {:.3f} ns a byte\n\n", q.model.gamma * kNano);
  text += fmt::format("{:>{}}  {:<{}}  {:>12}", "bytes", kSizeWidth, "chosen", kNameWidth, "us");
  for (const Algorithm algorithm : AlgorithmsOf(q.kind))
    text += fmt::format("  {:>{}}", NameOf(algorithm), kNameWidth);
  text += '\n';
  for (size_t bytes = q.min_bytes; bytes <= q.max_bytes; bytes *= 2) {
    const Algorithm chosen = selector.For(q.kind, bytes).algorithm;
    text += fmt::format("{:>{}}  {:<{}}  {:>12}", bytes, kSizeWidth, NameOf(chosen), kNameWidth,
                        TimeOf(q, chosen, bytes));
    for (const Algorithm algorithm : AlgorithmsOf(q.kind))
      text += fmt::format("  {:>{}}", TimeOf(q, algorithm, bytes), kNameWidth);
    text += '\n';
  }
  return text;
}

std::string Json(const Question& q) {
  const Selector selector = SelectorOf(q);
  nlohmann::ordered_json object = {{"operation", NameOf(q.kind)},
                                   {"ranks", q.shape.world},
                                   {"nodes", q.shape.nodes},
                                   {"source", q.source},
                                   {"forced", NameOf(q.forced)},
                                   {"within", ToJson(q.model.within)},
                                   {"between", ToJson(q.model.between)},
                                   {"gammaNanosecondsPerByte", q.model.gamma * kNano},
                                   {"sizes", nlohmann::ordered_json::array()}};
  for (size_t bytes = q.min_bytes; bytes <= q.max_bytes; bytes *= 2) {
    nlohmann::ordered_json candidates = nlohmann::ordered_json::object();
    for (const Algorithm algorithm : AlgorithmsOf(q.kind)) {
      const double time = Microseconds(q, algorithm, bytes);
      if (std::isfinite(time)) candidates[NameOf(algorithm)] = time;
    }
    object["sizes"].push_back({{"bytes", bytes},
                               {"chosen", NameOf(selector.For(q.kind, bytes).algorithm)},
                               {"microseconds", candidates}});
  }
  return object.dump(2) + '\n';
}

}  // namespace ringmaster::collectives::explain

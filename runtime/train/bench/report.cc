#include "runtime/train/bench/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/text.h"

namespace ringmaster::train::bench {
namespace {

std::string Heading(const Options& options) {
  std::string text = fmt::format("{}: batch {}", options.model, options.batch);
  if (options.shards != 1) text += fmt::format(" in {} shards", options.shards);
  return text + fmt::format(", f32, {}", WithNoun(options.threads, "thread"));
}

std::string OnCores(const Result& result) {
  if (result.cores.empty()) return "";
  return fmt::format(" on core{} {}", result.cores.size() == 1 ? "" : "s",
                     fmt::join(result.cores, ","));
}

double Sum(const std::vector<Share>& shares) {
  double sum = 0;
  for (const Share& share : shares) sum += share.seconds;
  return sum;
}

std::string Line(double seconds, double total, const std::string& what) {
  return fmt::format("  {:>10}  {:>5.1f} %  {}\n", WithTimeUnit(seconds), 100 * seconds / total,
                     what);
}

}  // namespace

std::string Text(const Options& options, const Result& result) {
  std::string text = fmt::format(
      "{}{}, {} parameters\n"
      "  a step takes {} (median of {}): {} samples/s\n"
      "  compiled in {}, of which {} in the first step; peak memory {:.1f} MB\n"
      "  allocations in a step: {}\n",
      Heading(options), OnCores(result), WithCommas(result.parameters),
      WithTimeUnit(result.step_seconds), WithCommas(result.steps),
      WithCommas(static_cast<int64_t>(result.samples_per_second)),
      WithTimeUnit(result.compile_seconds), WithTimeUnit(result.first_step_extra_seconds),
      static_cast<double>(result.peak_bytes) / 1e6,
      result.most_allocations == 0 ? "none"
                                   : fmt::format("up to {}", WithCommas(result.most_allocations)));
  if (!options.trace.empty())
    text += fmt::format("  one of the steps is in {}, for ui.perfetto.dev\n", options.trace);
  if (options.profile) return text + Table(result.profile);
  const double total = Sum(result.shares);
  for (const Share& share : result.shares) text += Line(share.seconds, total, share.what);
  return text;
}

std::string Text(const Options& options, const Limit& limit) {
  int64_t ops = 0;
  for (const LimitPart& part : limit.parts) ops += part.count;
  std::string text = fmt::format(
      "{}\n"
      "  its {} convolutions and matrix products alone take {}: {:.1f} samples/s\n",
      Heading(options), ops, WithTimeUnit(limit.step_seconds), limit.samples_per_second);
  if (!options.profile) return text;
  for (const LimitPart& part : limit.parts) {
    text += Line(static_cast<double>(part.count) * part.seconds, limit.step_seconds,
                 fmt::format("{:<20} {:>3} of {:>8}  {}  {}", part.op, part.count,
                             WithTimeUnit(part.seconds), part.shapes, part.implementation));
  }
  return text;
}

std::string Json(const Options& options, const Limit& limit) {
  nlohmann::ordered_json json{{"model", options.model},
                              {"batch", options.batch},
                              {"dtype", "f32"},
                              {"threads", options.threads},
                              {"limit_seconds", limit.step_seconds},
                              {"limit_samples_per_second", limit.samples_per_second}};
  return json.dump() + "\n";
}

std::string Json(const Options& options, const Result& result) {
  nlohmann::ordered_json json{{"model", options.model},
                              {"batch", options.batch},
                              {"shards", options.shards},
                              {"dtype", "f32"},
                              {"threads", options.threads},
                              {"cores", result.cores},
                              {"parameters", result.parameters},
                              {"steps", result.steps},
                              {"step_seconds", result.step_seconds},
                              {"samples_per_second", result.samples_per_second},
                              {"compile_seconds", result.compile_seconds},
                              {"first_step_extra_seconds", result.first_step_extra_seconds},
                              {"peak_bytes", result.peak_bytes},
                              {"most_allocations", result.most_allocations}};
  const double total = Sum(result.shares);
  for (const Share& share : result.shares) json["share"][share.what] = share.seconds / total;
  json["ops"] = nlohmann::ordered_json::array();
  for (const graph::OpProfile& op : result.profile.ops) {
    json["ops"].push_back({{"node", op.node},
                           {"op", op.op},
                           {"implementation", op.implementation},
                           {"seconds", result.profile.SecondsOf(op)}});
  }
  return json.dump() + "\n";
}

}  // namespace ringmaster::train::bench

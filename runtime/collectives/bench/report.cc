#include "runtime/collectives/bench/report.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/collectives/bench/processor_clock.h"

namespace ringmaster::collectives::bench {
namespace {

struct Bandwidth {
  double algorithm = 0;  // GB/s, of 10^9 bytes
  double bus = 0;
};

Bandwidth BandwidthOf(const Options& options, const Row& row, const Timing& timing) {
  if (timing.seconds <= 0) return {};
  const double algorithm = static_cast<double>(row.bytes) / timing.seconds / 1e9;
  return {algorithm, algorithm * BusFactor(options.op, options.ranks)};
}

// The mean of all bus bandwidths of a run.
double AverageBus(const Options& options, const std::vector<Row>& rows) {
  double sum = 0;
  int measured = 0;
  for (const Row& row : rows) {
    for (const auto& timing : {row.out_of_place, row.in_place}) {
      if (!timing) continue;
      sum += BandwidthOf(options, row, *timing).bus;
      ++measured;
    }
  }
  return measured == 0 ? 0 : sum / measured;
}

// Microseconds in seven characters with as many digits as fit.
std::string Micros(double seconds) {
  const double micros = seconds * 1e6;
  return fmt::format("{:.{}f}", micros, micros >= 10000 ? 0 : micros >= 100 ? 1 : 2);
}

std::string Columns(const Options& options, const Row& row, const std::optional<Timing>& timing) {
  if (!timing) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "-", "-", "-", "-");
  const Bandwidth bandwidth = BandwidthOf(options, row, *timing);
  return fmt::format("  {:>7}  {:>6.2f}  {:>6.2f}  {:>5}", Micros(timing->seconds),
                     bandwidth.algorithm, bandwidth.bus, timing->wrong);
}

// The operation's time as a part of the other's.
double RatioOf(const Row& row) {
  const Timing& own = row.out_of_place ? *row.out_of_place : *row.in_place;
  return own.seconds / row.beside->seconds;
}

std::string BesideColumns(const Row& row) {
  if (!row.beside) return "";
  return fmt::format("  {:>7}  {:>6.2f}  {:>5}", Micros(row.beside->seconds), RatioOf(row),
                     row.beside->wrong);
}

std::string BesideJson(const Options& options, const Row& row) {
  if (!row.beside) return "null";
  return fmt::format(R"({{"op":"{}","time_us":{:.3f},"ratio":{:.4f},"wrong":{}}})", options.beside,
                     row.beside->seconds * 1e6, RatioOf(row), row.beside->wrong);
}

std::string JsonOf(const Options& options, const Row& row, const std::optional<Timing>& timing) {
  if (!timing) return "null";
  const Bandwidth bandwidth = BandwidthOf(options, row, *timing);
  return fmt::format(
      R"({{"time_us":{:.3f},"algbw":{:.6f},"busbw":{:.6f},"wrong":{},"step_ns":{:.4f}}})",
      timing->seconds * 1e6, bandwidth.algorithm, bandwidth.bus, timing->wrong, timing->step_ns);
}

// A line that names what was measured while the processors were slower than at their fastest in
// this run, and by how much; none where nothing was.
std::string SlowerClock(const std::vector<Row>& rows) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Row& row : rows) {
    for (const auto& timing : {row.out_of_place, row.in_place})
      if (timing) fastest = std::min(fastest, timing->step_ns);
  }
  std::vector<std::string> slower;
  for (const Row& row : rows) {
    const auto name = [&](const std::optional<Timing>& timing, const char* place) {
      if (timing && timing->step_ns > kSameClock * fastest)
        slower.push_back(fmt::format("{} {} {:.1f}x", row.bytes, place, timing->step_ns / fastest));
    };
    name(row.out_of_place, "out-of-place");
    name(row.in_place, "in-place");
  }
  if (slower.empty()) return "";
  return fmt::format("# Slower processors    : {}\n", fmt::join(slower, ", "));
}

}  // namespace

double BusFactor(const std::string& op, int ranks) {
  const double n = ranks;
  if (op == "allreduce" || op == "ordered-sum") return 2 * (n - 1) / n;
  if (op == "broadcast" || op == "reduce" || op == "send-receive") return 1;
  return (n - 1) / n;
}

uint64_t AllWrong(const std::vector<Row>& rows) {
  uint64_t wrong = 0;
  for (const Row& row : rows) {
    for (const auto& timing : {row.out_of_place, row.in_place, row.beside})
      wrong += timing ? timing->wrong : 0;
  }
  return wrong;
}

std::string Header(const Options& options) {
  std::string text = fmt::format(
      "# ringmaster bench collectives: {} of {} ranks, processes of this machine, transport {}{}\n"
      "# minBytes {} maxBytes {} step: {}(factor) warmup iters: {} iters: {} validation: 1\n#\n",
      options.op, options.ranks, options.transport, options.tls ? " with TLS" : "",
      options.min_bytes, options.max_bytes, options.factor, options.warmup, options.iterations);
  const auto beside = [&](const std::string& a, const char* b, const char* c) {
    return options.beside.empty() ? "" : fmt::format("  {:>7}  {:>6}  {:>5}", a, b, c);
  };
  const auto both = [&](const char* a, const char* b, const char* c, const char* d) {
    const std::string side = fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", a, b, c, d);
    return side + side;
  };
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:^30}  {:^30}", "", "", "", "", "",
                      "out-of-place", "in-place");
  if (!options.beside.empty()) text += fmt::format("  {:^22}", options.beside);
  text += "\n";
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "size", "count", "type",
                      "redop", "root", both("time", "algbw", "busbw", "#wrong"),
                      beside("time", "ratio", "#wrong"));
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "(B)", "(elements)", "", "",
                      "", both("(us)", "(GB/s)", "(GB/s)", ""), beside("(us)", "", ""));
  return text;
}

std::string Line(const Options& options, const Row& row) {
  return fmt::format("  {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}\n", row.bytes, row.count,
                     row.type, row.redop, row.root, Columns(options, row, row.out_of_place),
                     Columns(options, row, row.in_place), BesideColumns(row));
}

std::string Footer(const Options& options, const std::vector<Row>& rows) {
  const uint64_t wrong = AllWrong(rows);
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.6g}\n{}#\n",
                     wrong, wrong == 0 ? "OK" : "FAILED", AverageBus(options, rows),
                     SlowerClock(rows));
}

std::string Json(const Options& options, const std::vector<Row>& rows) {
  std::string text = fmt::format(
      R"({{"op":"{}","ranks":{},"transport":"{}","tls":{},"iterations":{},"warmup":{},"rows":[)",
      options.op, options.ranks, options.transport, options.tls, options.iterations,
      options.warmup);
  const char* separator = "";
  for (const Row& row : rows) {
    text += fmt::format(R"({}
{{"size":{},"count":{},"type":"{}","redop":"{}","root":{},"out_of_place":{},"in_place":{},"beside":{}}})",
                        separator, row.bytes, row.count, row.type, row.redop, row.root,
                        JsonOf(options, row, row.out_of_place), JsonOf(options, row, row.in_place),
                        BesideJson(options, row));
    separator = ",";
  }
  return text + fmt::format("],\n\"wrong\":{},\"average_busbw\":{:.6f}}}\n", AllWrong(rows),
                            AverageBus(options, rows));
}

}  // namespace ringmaster::collectives::bench

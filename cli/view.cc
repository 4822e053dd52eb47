#include "cli/view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/text.h"

namespace ringmaster::cli {
namespace {

constexpr int kLongestBar = 40;
constexpr int kShortestBar = 10;
constexpr char kGreen[] = "\x1b[32m";
constexpr char kRed[] = "\x1b[31m";
constexpr char kGrey[] = "\x1b[90m";
constexpr char kPlain[] = "\x1b[0m";

std::string Painted(const std::string& text, const char* colour, bool on) {
  return on ? colour + text + kPlain : text;
}

std::string WorkerText(const WorkerView& worker, bool colour) {
  const std::string name = fmt::format("w{}", worker.index);
  switch (worker.state) {
    case WorkerState::kStarting:
      return name + " " + Painted("○", kGrey, colour);
    case WorkerState::kRunning:
      return fmt::format("{} {} {:.1f} ms", name, Painted("●", kGreen, colour),
                         worker.step_seconds * 1e3);
    case WorkerState::kLost:
      return fmt::format("{} {} {}", name, Painted("✗", kRed, colour), worker.note);
    case WorkerState::kDone:
      return name + " " + Painted("✓", kGreen, colour);
  }
  return name;
}

std::string ShardsText(const JobView& job) {
  return job.shards == 0 ? "plain ring" : fmt::format("in {} shards", job.shards);
}

}  // namespace

std::string HeaderLine(const JobView& job) {
  std::string line = job.name;
  if (!job.model.empty()) line += "  " + job.model;
  if (job.batch > 0) line += fmt::format(" · batch {} {}", job.batch, ShardsText(job));
  line += fmt::format(" · {} worker{} on this machine", job.workers, job.workers == 1 ? "" : "s");
  if (job.batch > 0) line += fmt::format(" · seed {}", job.seed);
  return line;
}

std::optional<Duration> TimeLeft(const JobView& job) {
  if (job.samples_per_second <= 0 || job.batch <= 0 || job.total_steps <= job.step)
    return std::nullopt;
  const double seconds =
      static_cast<double>(job.total_steps - job.step) * job.batch / job.samples_per_second;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::string ProgressLine(const JobView& job) {
  if (job.step == 0) return job.state.empty() ? "Pending" : job.state;
  std::string line;
  if (job.epochs > 0)
    line += fmt::format("epoch {}/{:g}  ",
                        std::min<int64_t>(std::floor(job.epoch) + 1, std::ceil(job.epochs)),
                        job.epochs);
  line += fmt::format("step {}/{}   loss {:.3f}", job.step, job.total_steps, job.loss);
  if (job.accuracy) line += fmt::format("   acc {:.1f} %", *job.accuracy * 100);
  if (job.samples_per_second > 0)
    line += fmt::format("   {} samples/s", WithCommas(std::lround(job.samples_per_second)));
  if (const auto left = TimeLeft(job); left && job.state == "Running")
    line += "   eta " + FormatDuration(*left);
  return line;
}

std::string WorkersLine(const JobView& job, bool colour) {
  std::string line;
  for (const WorkerView& worker : job.members)
    line += (line.empty() ? "" : "   ") + WorkerText(worker, colour);
  return line;
}

std::vector<std::string> LiveBlock(const JobView& job, int width, bool colour) {
  const std::string progress = ProgressLine(job);
  const int room = width - DisplayWidth(progress) - 4;
  std::string first = "  ";
  if (room >= kShortestBar && job.total_steps > 0) {
    const double share = static_cast<double>(job.step) / static_cast<double>(job.total_steps);
    first += Painted(ProgressBar(share, std::min(room, kLongestBar)), kGreen, colour) + "  ";
  }
  return {Truncate(first + progress, width), Truncate("  " + WorkersLine(job, colour), width)};
}

}  // namespace ringmaster::cli

#include "cli/view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cli/text.h"
#include "common/text.h"

namespace ringmaster::cli {
namespace {

constexpr int kLongestBar = 40;
constexpr int kShortestBar = 10;
// What the text beside the bar takes at its longest: kept free, so that the bar does not change its
// length whenever a number does. Narrower terminals have the bar on a line of its own.
constexpr int kProgressColumns = 88;
constexpr int kMeasureColumns = 24;   // what JobView::measure adds to them
constexpr int kTimeLeftColumns = 16;  // the same for the time left alone
constexpr int kMostWorkerLines = 4;
constexpr char kBetweenWorkers[] = "   ";
constexpr char kGreen[] = "\x1b[32m";
constexpr char kRed[] = "\x1b[31m";
constexpr char kGrey[] = "\x1b[90m";
constexpr char kPlain[] = "\x1b[0m";

// In another state, what was last measured is of an earlier round.
bool Trains(const JobView& job) {
  return job.state == "Running" || job.state == "Succeeded";
}

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

// All but the time left.
std::string ProgressText(const JobView& job) {
  if (job.step == 0) return job.state.empty() ? "Pending" : job.state;
  std::string line = Trains(job) ? "" : job.state + "   ";
  if (job.epochs > 0)
    line += fmt::format("epoch {}/{:g}  ",
                        std::min<int64_t>(std::floor(job.epoch) + 1, std::ceil(job.epochs)),
                        job.epochs);
  line += fmt::format("step {}/{}   loss {:.3f}", job.step, job.total_steps, job.loss);
  if (job.skipped_steps > 0) line += fmt::format("   {} skipped", job.skipped_steps);
  if (job.accuracy) line += fmt::format("   acc {:.1f} %", *job.accuracy * 100);
  if (job.measure && !job.measure->empty()) line += "   " + *job.measure;
  if (Trains(job) && job.samples_per_second > 0)
    line += fmt::format("   {} samples/s", WithCommas(std::lround(job.samples_per_second)));
  return line;
}

std::string TimeLeftText(const JobView& job) {
  const auto left = TimeLeft(job);
  return left && job.state == "Running" ? "eta " + FormatDuration(*left) : "";
}

std::string ShardsText(const JobView& job) {
  return job.shards == 0 ? "plain ring" : fmt::format("in {} shards", job.shards);
}

}  // namespace

std::string HeaderLine(const JobView& job) {
  std::string line = job.name;
  if (!job.model.empty()) line += "  " + job.model;
  if (job.batch > 0) line += fmt::format(" · batch {} {}", job.batch, ShardsText(job));
  line += fmt::format(" · {} {}", WithNoun(job.workers, "worker"), job.place);
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
  const std::string left = TimeLeftText(job);
  return ProgressText(job) + (left.empty() ? "" : "   " + left);
}

std::vector<std::string> WorkerLines(const JobView& job, int width, bool colour) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < job.members.size(); ++i) {
    const std::string text = WorkerText(job.members[i], colour);
    if (!lines.empty() && DisplayWidth(lines.back() + kBetweenWorkers + text) <= width) {
      lines.back() += kBetweenWorkers + text;
    } else if (lines.size() < kMostWorkerLines) {
      lines.push_back("  " + text);
    } else {
      lines.push_back(fmt::format("  and {} more", job.members.size() - i));
      break;
    }
  }
  return lines;
}

std::vector<std::string> LiveBlock(const JobView& job, int width, bool colour) {
  const auto Bar = [&](int columns) {
    const double share =
        static_cast<double>(job.step) / static_cast<double>(std::max<int64_t>(1, job.total_steps));
    return "  " + Painted(ProgressBar(share, std::clamp(columns, 0, kLongestBar)), kGreen, colour);
  };
  const int beside = kProgressColumns + (job.measure ? kMeasureColumns : 0);
  std::vector<std::string> block;
  if (job.total_steps <= 0) {
    block = {"  " + ProgressLine(job)};
  } else if (width >= kShortestBar + beside) {
    block = {Bar(width - beside) + "  " + ProgressLine(job)};
  } else {
    block = {Bar(width - kTimeLeftColumns) + "  " + TimeLeftText(job), "  " + ProgressText(job)};
  }
  for (std::string& line : WorkerLines(job, width, colour)) block.push_back(std::move(line));
  for (std::string& line : block) line = Truncate(line, width);
  return block;
}

}  // namespace ringmaster::cli

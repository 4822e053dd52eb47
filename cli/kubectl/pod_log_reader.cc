#include "cli/kubectl/pod_log_reader.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace ringmaster::cli::kubectl {
namespace {

// Bounds one pass, so that a log that grows faster than it is printed lets the others in.
constexpr int kMostLines = 1000;
// A log that is read to its end is waited for; one that is followed is only looked at.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

void LinesSeen::Restart() {
  restarted_ = last_.has_value();
  to_skip_ = at_last_;
}

bool LinesSeen::Skip(std::string_view time) {
  const auto parsed = ParseTime(time);
  if (!parsed.ok()) return false;
  if (restarted_) {
    if (*parsed < *last_) return true;
    if (*parsed == *last_ && to_skip_ > 0) {
      --to_skip_;
      return true;
    }
    restarted_ = false;
  }
  at_last_ = last_ == *parsed ? at_last_ + 1 : 1;
  last_ = *parsed;
  last_time_ = time;
  return false;
}

PodLogReader::PodLogReader(kube::rest::RestClient& client, kube::ObjectKey pod, Options options)
    : client_(client), pod_(std::move(pod)), options_(std::move(options)) {}

void PodLogReader::Refresh(bool container_ended) {
  ended_ = container_ended;
  resting_ = false;
}

void PodLogReader::Abandon() {
  gone_ = true;
  if (!stream_) over_ = true;
}

absl::Status PodLogReader::Connect() {
  kube::rest::LogOptions log;
  log.container = options_.container;
  log.follow = options_.follow;
  log.timestamps = true;
  log.since_time = seen_.last_time();
  // Once lines were seen, the last ones of the whole log are others.
  if (log.since_time.empty()) log.tail_lines = options_.tail_lines;
  RM_ASSIGN_OR_RETURN(stream_, client_.Log(pod_, log));
  final_ = ended_ || !options_.follow;
  seen_.Restart();
  return absl::OkStatus();
}

void PodLogReader::HandOut(std::string_view stamped, const Line& line) {
  const std::size_t space = std::min(stamped.find(' '), stamped.size());
  const std::string_view time = stamped.substr(0, space);
  const bool has_time = ParseTime(time).ok();
  if (has_time && seen_.Skip(time)) return;
  const bool whole = options_.timestamps || !has_time;
  line(whole ? stamped : stamped.substr(std::min(space + 1, stamped.size())));
}

void PodLogReader::Close(bool whole) {
  stream_.reset();
  over_ = gone_ || (whole && final_);
  resting_ = options_.follow;
}

absl::Status PodLogReader::Poll(const Line& line) {
  if (over_ || resting_) return absl::OkStatus();
  if (const absl::Status status = stream_ ? absl::OkStatus() : Connect(); !status.ok()) {
    resting_ = options_.follow;
    return status;
  }
  for (int lines = 0; lines < kMostLines; ++lines) {
    auto next = stream_->Next(options_.follow ? std::chrono::milliseconds(0) : kPatience);
    if (absl::IsDeadlineExceeded(next.status())) return absl::OkStatus();
    if (!next.ok()) {
      Close(/*whole=*/false);
      return options_.follow && absl::IsUnavailable(next.status()) ? absl::OkStatus()
                                                                   : next.status();
    }
    if (!next->has_value()) {
      Close(/*whole=*/true);
      return absl::OkStatus();
    }
    HandOut(**next, line);
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::cli::kubectl

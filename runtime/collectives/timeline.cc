#include "runtime/collectives/timeline.h"

#include <cerrno>
#include <fcntl.h>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kWriteBytes = 64 * 1024;
constexpr std::chrono::seconds kWritePeriod{1};

thread_local TimelineTrack* this_threads_track = nullptr;

std::chrono::microseconds Microseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration);
}

// Names are the program's own; a name of a manifest's layer may hold anything.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string NameEvent(const char* kind, int rank, int track, std::string_view name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", kind,
                     rank, track, Quoted(name));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Timeline>> Timeline::Open(const std::filesystem::path& path,
                                                         int rank, std::string_view process,
                                                         const Options& options) {
  RM_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, path.string());
  return std::unique_ptr<Timeline>(new Timeline(std::move(file), rank, process, options));
}

Timeline::Timeline(UniqueFd file, int rank, std::string_view process, const Options& options)
    : file_(std::move(file)),
      rank_(rank),
      options_(options),
      zero_((options.from_epoch ? Microseconds(std::chrono::system_clock::now().time_since_epoch())
                                : std::chrono::microseconds(0)) -
            Microseconds(std::chrono::steady_clock::now().time_since_epoch())),
      pending_("[\n") {
  Append(NameEvent("process_name", rank, 0, process));
  writer_ = std::thread([this] { Write(); });
}

Timeline::~Timeline() {
  Finish().IgnoreError();
}

absl::Status Timeline::Finish() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
  return written_;
}

// In microseconds. Both ends of a phase are cut alike, so that it stays inside of the outer one.
std::string Timeline::Text(std::chrono::nanoseconds time) const {
  const auto whole = std::chrono::floor<std::chrono::microseconds>(time);
  if (options_.from_epoch) return fmt::format("{}", whole.count());
  return fmt::format("{}.{:03}", whole.count(), (time - whole).count());
}

void Timeline::Add(std::string_view track, std::string_view phase, Time begin, Time end,
                   std::string_view detail) {
  std::chrono::nanoseconds start = zero_ + begin.time_since_epoch();
  std::chrono::nanoseconds stop = zero_ + end.time_since_epoch();
  if (options_.from_epoch) {
    start = Microseconds(start);
    stop = Microseconds(stop);
  }
  const std::string args =
      detail.empty() ? "" : fmt::format(R"(,"args":{{"detail":{}}})", Quoted(detail));
  const std::lock_guard lock(mutex_);
  if (full_) return;
  const int number = TrackNumber(track);
  Append(fmt::format(R"({{"ph":"X","name":{},"ts":{},"dur":{},"pid":{},"tid":{}{}}})",
                     Quoted(phase), Text(start), Text(stop - start), rank_, number, args));
  if (bytes_ < options_.most_bytes) return;
  full_ = true;
  Append(fmt::format(
      R"({{"ph":"i","s":"g","name":"the timeline ends here: {} bytes","ts":{},"pid":{},"tid":0}})",
      bytes_, Text(stop), rank_));
}

void Timeline::Append(std::string event) {
  bytes_ += event.size() + 2;
  pending_ += event;
  pending_ += ",\n";
  if (pending_.size() >= kWriteBytes) changed_.notify_all();
}

int Timeline::TrackNumber(std::string_view track) {
  if (const auto found = tracks_.find(track); found != tracks_.end()) return found->second;
  const int number = static_cast<int>(tracks_.size()) + 1;
  tracks_.emplace(track, number);
  Append(NameEvent("thread_name", rank_, number, track));
  return number;
}

// The last event has no comma behind it.
std::string Timeline::End() const {
  return fmt::format(
      R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}}]{})", rank_,
      rank_, "\n");
}

// A disk that fails costs the timeline, never the training.
void Timeline::Write() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait_for(lock, kWritePeriod,
                      [this] { return over_ || pending_.size() >= kWriteBytes; });
    const bool last = over_;
    std::string text = std::exchange(pending_, {});
    if (last) text += End();
    if (written_.ok()) {
      lock.unlock();
      absl::Status status = WriteAll(file_.get(), std::as_bytes(std::span(text)), "timeline");
      lock.lock();
      written_ = std::move(status);
    }
    full_ = full_ || !written_.ok();
    if (last) return;
  }
}

TimelineTrack::TimelineTrack(Timeline* timeline, std::string_view track)
    : timeline_(timeline),
      track_(timeline == nullptr ? "" : track),
      outer_(std::exchange(this_threads_track, timeline == nullptr ? nullptr : this)) {}

TimelineTrack::~TimelineTrack() {
  this_threads_track = outer_;
}

std::string_view TimelineTrack::CurrentPhase() {
  return this_threads_track == nullptr ? "" : this_threads_track->phase_;
}

std::pair<Timeline*, std::string> TimelineTrack::Current() {
  if (this_threads_track == nullptr) return {nullptr, ""};
  return {this_threads_track->timeline_, std::string(this_threads_track->track_)};
}

Phase::Phase(const char* name) : track_(this_threads_track), name_(name) {
  if (track_ == nullptr) return;
  outer_ = std::exchange(track_->phase_, name_);
  begin_ = std::chrono::steady_clock::now();
}

Phase::~Phase() {
  if (track_ == nullptr) return;
  track_->phase_ = outer_;
  track_->timeline_->Add(track_->track_, name_, begin_, std::chrono::steady_clock::now());
}

}  // namespace ringmaster::collectives

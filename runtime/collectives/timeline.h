// What became of each tensor, and when: a file for ui.perfetto.dev or chrome://tracing.
//
// A Timeline writes one worker's file. Each tensor (or bucket of them) has a track of its own; on
// it lie the phases of its life: waiting, fusing, the operation, and inside it the algorithm's own.
// Algorithms know nothing of timelines: they name their phases, and what thread works for which
// track decides where the phases go.
//
//   auto timeline = Timeline::Open("digits-0-0.json", 0, "digits-0-0");
//   {
//     const TimelineTrack track(timeline->get(), "gradients of conv1.weight");
//     const Phase phase("ordered sum");           // on that track, until the end of the block
//     ...an algorithm: { const Phase phase("gather slices"); ... }
//   }
//
// A call that is started (Communicator::Start) goes on with the track of the thread that starts it,
// where it waits for its turn first; the timeline outlives the call.
//
// Without a track on this thread a Phase costs one look at a thread-local pointer. A Timeline is
// thread-safe; its own thread writes, so that nobody waits for a disk. It stops at a size of
// kMostBytes, and says so in the file.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TIMELINE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TIMELINE_H_

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace ringmaster::collectives {

class Timeline {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kMostBytes = size_t{64} << 20;

  struct Options {
    size_t most_bytes = kMostBytes;
    // Whether times count from the epoch, in whole microseconds, so that several workers' files lie
    // side by side; else from Open, with three digits more: readers keep both in 53 bits.
    bool from_epoch = true;
  };

  // Makes the file, and its folders; what was there is gone. `rank` and `process` name the worker
  // in it.
  // Errors are those of files.
  static absl::StatusOr<std::unique_ptr<Timeline>> Open(const std::filesystem::path& path, int rank,
                                                        std::string_view process,
                                                        const Options& options);
  static absl::StatusOr<std::unique_ptr<Timeline>> Open(const std::filesystem::path& path, int rank,
                                                        std::string_view process) {
    return Open(path, rank, process, Options());
  }
  // Ends the file, unless Finish has. A file of a worker that was killed lacks the end, which its
  // readers forgive.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // A phase of `track` from `begin` to `end`; `detail` is shown where it is looked at.
  void Add(std::string_view track, std::string_view phase, Time begin, Time end,
           std::string_view detail = "");

  // Writes what is left and ends the file; nothing may be added any more. The first error of the
  // disk, which has ended the file earlier, for whom the file is not a by-product.
  absl::Status Finish();

 private:
  Timeline(UniqueFd file, int rank, std::string_view process, const Options& options);
  std::string Text(std::chrono::nanoseconds time) const;
  void Append(std::string event);
  int TrackNumber(std::string_view track);
  std::string End() const;
  void Write();

  const UniqueFd file_;
  const int rank_;
  const Options options_;
  const std::chrono::microseconds zero_;  // what is added to the steady clock's times

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::string pending_;
  std::map<std::string, int, std::less<>> tracks_;
  size_t bytes_ = 0;
  bool full_ = false;
  bool over_ = false;
  absl::Status written_;

  std::thread writer_;  // last: it uses the others
};

// While it lives, phases of this thread go to the track, whose name outlives it. `timeline` may be
// null: then they go nowhere.
class TimelineTrack {
 public:
  TimelineTrack(Timeline* timeline, std::string_view track);
  ~TimelineTrack();
  TimelineTrack(const TimelineTrack&) = delete;
  TimelineTrack& operator=(const TimelineTrack&) = delete;

  // The innermost phase of this thread's track, for who wants to know where an algorithm is; empty
  // where there is none.
  static std::string_view CurrentPhase();

  // This thread's track, for another that goes on with its work: its timeline, or null, and name.
  static std::pair<Timeline*, std::string> Current();

 private:
  friend class Phase;
  Timeline* const timeline_;
  const std::string_view track_;
  TimelineTrack* const outer_;
  const char* phase_ = "";
};

// A phase of this thread's track, as long as it lives. `name` outlives it.
class Phase {
 public:
  explicit Phase(const char* name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  TimelineTrack* const track_;
  const char* const name_;
  const char* outer_ = nullptr;
  Timeline::Time begin_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TIMELINE_H_

// Writes checkpoints behind the training loop.
//
// Submit copies the tensors (the only time that training waits for) and returns; one thread writes
// the copies to disk in the order of submission and reports each. There are two buffers: one being
// written, one waiting. Memory for a copy is kept and used again.
//
//   AsyncWriter writer("/ckpt", "default/digits", [&](const WriteResult& result) { ... });
//   RM_RETURN_IF_ERROR(writer.Submit({.step = 20, .round = 3, .world_size = 4}, rank, tensors,
//                                    metadata, std::chrono::seconds(10)));
//   ...
//   RM_RETURN_IF_ERROR(writer.Flush(std::chrono::minutes(10)));
//
// Submit and Flush are for one thread. `done` runs on the writer's thread: it must not call the
// writer, and must be thread-safe towards the rest of the program.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_ASYNC_WRITER_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_ASYNC_WRITER_H_

#include <array>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_name.h"

namespace ringmaster::checkpoint {

// What became of one Submit.
struct WriteResult {
  CheckpointId id;
  int rank = 0;
  // WriteShard's, but kUnavailable where a disk timed out: kDeadlineExceeded is Flush's, for what
  // may still come. Nothing below holds when it is not OK.
  absl::Status status;
  std::string digest;  // of the file
  int64_t bytes = 0;
  double seconds = 0;  // on the writer's thread
};

class AsyncWriter {
 public:
  AsyncWriter(std::filesystem::path directory, std::string job,
              std::function<void(const WriteResult&)> done);
  // Finishes the file that is being written; one that only waits is given up.
  ~AsyncWriter();
  AsyncWriter(const AsyncWriter&) = delete;
  AsyncWriter& operator=(const AsyncWriter&) = delete;

  // Blocks only while both buffers are in use, and at most for `patience`: kDeadlineExceeded, with
  // nothing submitted, when the disk is that much slower than the checkpoints come.
  absl::Status Submit(const CheckpointId& id, int rank, std::span<const TensorView> tensors,
                      const Metadata& metadata, Duration patience);

  // Waits until everything submitted has been reported. kDeadlineExceeded when it takes longer.
  absl::Status Flush(Duration timeout);

 private:
  enum class Stage { kFree, kWaiting, kWriting };
  struct Slot {
    Stage stage = Stage::kFree;
    uint64_t order = 0;
    CheckpointId id;
    int rank = 0;
    std::vector<TensorView> tensors;  // into `bytes`
    std::vector<std::byte> bytes;
    Metadata metadata;
  };

  void Loop();
  Slot* Free();
  Slot* NextWaiting();
  WriteResult Write(const Slot& slot) const;
  static void Copy(std::span<const TensorView> tensors, Slot& slot);

  const std::filesystem::path directory_;
  const std::string job_;
  const std::function<void(const WriteResult&)> done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Slot, 2>
      slots_;  // stages guarded by mutex_; the rest belongs to whoever the stage says
  uint64_t next_order_ = 0;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_ASYNC_WRITER_H_

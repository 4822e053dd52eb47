#include "runtime/checkpoint/async_writer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/checkpoint/shard_file.h"

namespace ringmaster::checkpoint {
namespace {

// A disk over the network says the same when its server does not answer as Flush does while
// something is not on disk yet; but nothing more comes of what it says.
absl::Status AsFinal(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

AsyncWriter::AsyncWriter(std::filesystem::path directory, std::string job,
                         std::function<void(const WriteResult&)> done)
    : directory_(std::move(directory)), job_(std::move(job)), done_(std::move(done)) {
  thread_ = std::thread([this] { Loop(); });
}

AsyncWriter::~AsyncWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

AsyncWriter::Slot* AsyncWriter::Free() {
  const auto free = std::find_if(slots_.begin(), slots_.end(),
                                 [](const Slot& slot) { return slot.stage == Stage::kFree; });
  return free == slots_.end() ? nullptr : &*free;
}

absl::Status AsyncWriter::Submit(const CheckpointId& id, int rank,
                                 std::span<const TensorView> tensors, const Metadata& metadata,
                                 Duration patience) {
  Slot* slot = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return (slot = Free()) != nullptr; })) {
      return absl::DeadlineExceededError(fmt::format(
          "{}: left out: two checkpoints before it are not on disk yet", directory_.string()));
    }
  }
  slot->id = id;
  slot->rank = rank;
  slot->metadata = metadata;
  Copy(tensors, *slot);
  {
    std::lock_guard lock(mutex_);
    slot->order = next_order_++;
    slot->stage = Stage::kWaiting;
  }
  changed_.notify_all();
  return absl::OkStatus();
}

void AsyncWriter::Copy(std::span<const TensorView> tensors, Slot& slot) {
  size_t total = 0;
  for (const TensorView& tensor : tensors) total += tensor.data.size();
  slot.bytes.resize(total);
  slot.tensors.assign(tensors.begin(), tensors.end());
  size_t offset = 0;
  for (TensorView& tensor : slot.tensors) {
    const std::span<std::byte> copy = std::span(slot.bytes).subspan(offset, tensor.data.size());
    std::copy(tensor.data.begin(), tensor.data.end(), copy.begin());
    offset += copy.size();
    tensor.data = copy;
  }
}

absl::Status AsyncWriter::Flush(Duration timeout) {
  std::unique_lock lock(mutex_);
  const bool idle = changed_.wait_for(lock, timeout, [&] {
    return std::all_of(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return slot.stage == Stage::kFree; });
  });
  return idle ? absl::OkStatus() : absl::DeadlineExceededError("the checkpoint is not yet on disk");
}

AsyncWriter::Slot* AsyncWriter::NextWaiting() {
  Slot* next = nullptr;
  for (Slot& slot : slots_) {
    const bool earlier = next == nullptr || slot.order < next->order;
    if (slot.stage == Stage::kWaiting && earlier) next = &slot;
  }
  return next;
}

void AsyncWriter::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || NextWaiting() != nullptr; });
    if (stopping_) return;
    Slot* slot = NextWaiting();
    slot->stage = Stage::kWriting;
    lock.unlock();
    done_(Write(*slot));
    lock.lock();
    slot->stage = Stage::kFree;
    changed_.notify_all();
  }
}

WriteResult AsyncWriter::Write(const Slot& slot) const {
  const auto begin = std::chrono::steady_clock::now();
  const auto written =
      WriteShard(directory_, job_, slot.id, slot.rank, slot.tensors, slot.metadata);
  WriteResult result{.id = slot.id, .rank = slot.rank, .status = AsFinal(written.status())};
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (written.ok()) {
    result.digest = written->digest;
    result.bytes = written->bytes;
  }
  return result;
}

}  // namespace ringmaster::checkpoint

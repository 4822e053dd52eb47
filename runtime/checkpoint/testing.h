// What the tests of this folder share: a directory that goes away, and a small checkpoint in it.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_TESTING_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_TESTING_H_

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/temporary_folder.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_file.h"
#include "runtime/checkpoint/shard_name.h"

namespace ringmaster::checkpoint {

class CheckpointFolder {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
};

// A disk that hangs: whoever opens `path` to write waits until LetGo, is then told that a pipe
// cannot be synced, and removes it. LetGo waits for that.
class HangingFile {
 public:
  explicit HangingFile(std::filesystem::path path) : path_(std::move(path)) {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0) << path_;
  }
  ~HangingFile() { LetGo(); }
  HangingFile(const HangingFile&) = delete;
  HangingFile& operator=(const HangingFile&) = delete;

  void LetGo() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const UniqueFd reader(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    char sink[4096];
    while (std::filesystem::exists(path_) && std::chrono::steady_clock::now() < deadline) {
      pollfd readable{reader.get(), POLLIN, 0};
      ::poll(&readable, 1, 5);
      while (::read(reader.get(), sink, sizeof sink) > 0) {
      }
    }
  }

 private:
  const std::filesystem::path path_;
};

inline constexpr char kTestJob[] = "default/digits";

// Five tensors of unequal sizes; `seed` tells one checkpoint's values from another's.
class TestState {
 public:
  explicit TestState(float seed) {
    for (const size_t size : {6U, 1U, 40U, 12U, 3U}) {
      std::vector<float>& values = values_.emplace_back(size);
      for (size_t i = 0; i < size; ++i) values[i] = seed + static_cast<float>(i);
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      tensors_.push_back({.name = "t" + std::to_string(i),
                          .shape = {static_cast<int64_t>(values_[i].size())},
                          .data = std::as_bytes(std::span(values_[i]))});
    }
  }

  std::span<const TensorView> tensors() const { return tensors_; }

  std::span<const TensorView> Part(int world, int rank) const {
    std::vector<size_t> sizes;
    for (const TensorView& tensor : tensors_) sizes.push_back(tensor.data.size());
    const PartRange part = PartOf(sizes, world, rank);
    return tensors().subspan(part.begin, part.end - part.begin);
  }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<TensorView> tensors_;
};

// Writes all files of a checkpoint, as its ranks would.
inline CheckpointRef WriteCheckpoint(const std::filesystem::path& directory, const CheckpointId& id,
                                     const TestState& state, const std::string& job = kTestJob) {
  std::vector<std::string> digests;
  for (int rank = 0; rank < id.world_size; ++rank) {
    const auto written = WriteShard(directory, job, id, rank, state.Part(id.world_size, rank),
                                    {{"step", std::to_string(id.step)}});
    EXPECT_TRUE(written.ok()) << written.status();
    digests.push_back(written.ok() ? written->digest : "");
  }
  return {.id = id, .digest = CombinedDigest(digests)};
}

inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void Spill(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_TESTING_H_

// How much memory this process has taken, may still take, and shares with which others.
#ifndef RINGMASTER_RUNTIME_DEVICE_AVAILABLE_MEMORY_H_
#define RINGMASTER_RUNTIME_DEVICE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::device {

// Memory that several processes take from. Reading one reads a few small files; `root` is where
// /proc and /sys are, for tests.
struct MemoryPool {
  std::string name;       // of all processes that share it, and of no others; empty: who can tell
  std::string owner;      // in words: "machine" or "container"
  int64_t available = 0;  // bytes that can be had without swapping
};

// What the machine has available (/proc/meminfo), and what the control group, of whichever version
// says less, has left below its limit, where there is one; pages of files count as free, as the
// kernel gives them back. Empty where the system does not say.
std::vector<MemoryPool> MemoryPools(const std::string& root = "");

// What the pool with the least has available; nothing where there is none.
std::optional<int64_t> AvailableMemory(const std::string& root = "");

// Bytes that this process may take.
struct MemoryRoom {
  int64_t available = 0;  // AvailableMemory
  int64_t most =
      std::numeric_limits<int64_t>::max();  // its container's limit, whatever else is in it
};

// Nothing where AvailableMemory is nothing.
std::optional<MemoryRoom> FindMemoryRoom(const std::string& root = "");

// Bytes of memory of its own, no file's and shared with nobody, that this process has touched and
// not given back, swapped out or not; nothing where the system does not say.
std::optional<int64_t> OwnMemory(const std::string& root = "");

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_AVAILABLE_MEMORY_H_

// How much memory this process may still take.
#ifndef RINGMASTER_RUNTIME_DEVICE_AVAILABLE_MEMORY_H_
#define RINGMASTER_RUNTIME_DEVICE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ringmaster::device {

// Bytes that can be had without swapping: what the machine has available (/proc/meminfo), or what
// the control group of either version has left below its limit where that is less; pages of files
// count as free, as the kernel gives them back. Nothing where the system does not say. `root` is
// where /proc and /sys are, for tests. Reads a few small files.
std::optional<int64_t> AvailableMemory(const std::string& root = "");

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_AVAILABLE_MEMORY_H_

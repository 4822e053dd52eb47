#include "operator/node/loopback.h"

#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::node {
namespace {

// 127.0.x is left alone: resolvers and other programs listen there.
constexpr int kFirstBlock = 77;
constexpr int kBlocks = 16;
constexpr int kFirstPod = 2;
constexpr int kLastPod = 254;

}  // namespace

LoopbackSubnet::LoopbackSubnet(LoopbackSubnet&& other) noexcept
    : lock_(std::move(other.lock_)), a_(other.a_), b_(other.b_) {}

absl::StatusOr<LoopbackSubnet> LoopbackSubnet::Acquire(const std::string& lock_directory) {
  RM_RETURN_IF_ERROR(MakeDirectories(lock_directory));
  for (int block = 0; block < kBlocks * 256; ++block) {
    const int a = kFirstBlock + block / 256;
    const int b = block % 256;
    auto lock = FileLock::Acquire(fmt::format("{}/127.{}.{}.lock", lock_directory, a, b),
                                  fmt::format("process {}", ::getpid()));
    if (lock.ok()) return LoopbackSubnet(*std::move(lock), a, b);
    if (lock.status().code() != absl::StatusCode::kAlreadyExists) return lock.status();
  }
  return absl::ResourceExhaustedError(
      fmt::format("all {} loopback subnets are in use; end another run or remove the locks in {}",
                  kBlocks * 256, lock_directory));
}

std::string LoopbackSubnet::host() const {
  return Address(1);
}

absl::StatusOr<std::string> LoopbackSubnet::Take() {
  std::lock_guard lock(mutex_);
  // Round robin, so that a replacement does not get the address of the worker that it replaces
  // while old frames are on their way.
  for (int tried = kFirstPod; tried <= kLastPod; ++tried) {
    const int last = next_;
    next_ = next_ == kLastPod ? kFirstPod : next_ + 1;
    if (taken_.insert(last).second) return Address(last);
  }
  return absl::ResourceExhaustedError(
      fmt::format("all addresses of 127.{}.{}.0/24 are in use", a_, b_));
}

void LoopbackSubnet::Release(const std::string& address) {
  std::lock_guard lock(mutex_);
  for (const int last : taken_) {
    if (Address(last) == address) {
      taken_.erase(last);
      return;
    }
  }
}

std::string LoopbackSubnet::Address(int last) const {
  return fmt::format("127.{}.{}.{}", a_, b_, last);
}

}  // namespace ringmaster::node

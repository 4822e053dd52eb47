#include "operator/node/loopback.h"

#include <cerrno>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/status.h"

namespace ringmaster::node {
namespace {

// 127.0.x is left alone: resolvers and other programs listen there.
constexpr int kFirstBlock = 77;
constexpr int kBlocks = 16;
constexpr int kFirstPod = 2;
constexpr int kLastPod = 254;

// A socket with the abstract name `name`. kAlreadyExists when another one has it.
absl::StatusOr<UniqueFd> Claim(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An abstract name begins behind a zero.
  const size_t length = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  if (errno == EADDRINUSE) return absl::AlreadyExistsError(name);
  return ErrnoStatus(errno, name);
}

}  // namespace

LoopbackSubnet::LoopbackSubnet(LoopbackSubnet&& other) noexcept
    : claim_(std::move(other.claim_)), a_(other.a_), b_(other.b_) {}

absl::StatusOr<LoopbackSubnet> LoopbackSubnet::Acquire(const std::string& name) {
  for (int block = 0; block < kBlocks * 256; ++block) {
    const int a = kFirstBlock + block / 256;
    const int b = block % 256;
    auto claim = Claim(fmt::format("{}-127.{}.{}", name, a, b));
    if (claim.ok()) return LoopbackSubnet(*std::move(claim), a, b);
    if (!absl::IsAlreadyExists(claim.status())) return claim.status();
  }
  return absl::ResourceExhaustedError(
      fmt::format("all {} loopback subnets are in use; end another run", kBlocks * 256));
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

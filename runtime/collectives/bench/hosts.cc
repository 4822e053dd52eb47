#include "runtime/collectives/bench/hosts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sched.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/syscall.h>

#include "common/file.h"

namespace ringmaster::collectives::bench {

absl::StatusOr<std::vector<Host>> ParseHosts(const std::string& text) {
  std::vector<Host> hosts;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    Host host;
    const auto parsed = std::from_chars(one.data(), one.data() + one.size(), host.pid);
    const size_t used = static_cast<size_t>(parsed.ptr - one.data());
    if (parsed.ec != std::errc() || host.pid <= 0 || used + 1 >= one.size() || one[used] != '@')
      return absl::InvalidArgumentError(fmt::format("--hosts: '{}' is not PID@ADDRESS", one));
    host.address = one.substr(used + 1);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Host HostOf(const std::vector<Host>& hosts, int rank, int ranks) {
  if (hosts.empty()) return {0, "127.0.0.1"};
  const auto count = static_cast<int>(hosts.size());
  return hosts[static_cast<size_t>(rank * count / ranks)];
}

absl::Status Enter(const Host& host) {
  if (host.pid == 0) return absl::OkStatus();
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, host.pid, 0)));
  if (process.get() < 0) return ErrnoStatus(errno, fmt::format("--hosts: process {}", host.pid));
  if (setns(process.get(), CLONE_NEWNET | CLONE_NEWNS) != 0)
    return ErrnoStatus(errno, fmt::format("--hosts: the namespaces of process {}", host.pid));
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives::bench

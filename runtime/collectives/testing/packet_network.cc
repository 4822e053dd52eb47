#include "runtime/collectives/testing/packet_network.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>

#include "common/check.h"

namespace ringmaster::collectives::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void Configure(const std::string& command) {
  RM_CHECK(std::system(command.c_str()) == 0, command.c_str());
}

}  // namespace

bool PacketNetwork::IsPossible() {
  return geteuid() == 0 && access("/dev/net/tun", R_OK | W_OK) == 0;
}

std::string PacketNetwork::Address(int host) {
  return fmt::format("10.83.0.{}", host + 1);
}

PacketNetwork::PacketNetwork(int hosts, unsigned seed) : random_(seed) {
  for (int host = 0; host < hosts; ++host) {
    std::thread([&] {
      RM_CHECK(unshare(CLONE_NEWNET) == 0, "no network namespace");
      spaces_.emplace_back(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
      tunnels_.emplace_back(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
      ifreq request{};
      request.ifr_flags = IFF_TUN | IFF_NO_PI;
      std::snprintf(request.ifr_name, sizeof(request.ifr_name), "tun0");
      RM_CHECK(ioctl(tunnels_.back().get(), TUNSETIFF, &request) == 0, "no tunnel");
      Configure(fmt::format("ip address add {}/24 dev tun0", Address(host)));
      Configure("ip link set tun0 up");
      Configure("ip link set lo up");
    }).join();
  }
  carrier_ = std::thread([this] { Carry(); });
}

PacketNetwork::~PacketNetwork() {
  stopping_ = true;
  carrier_.join();
}

void PacketNetwork::SetWeather(const Weather& weather) {
  const std::lock_guard lock(mutex_);
  weather_ = weather;
}

void PacketNetwork::Enter(int host) {
  RM_CHECK(setns(spaces_[static_cast<size_t>(host)].get(), CLONE_NEWNET) == 0, "cannot enter");
}

void PacketNetwork::SetLink(int host, bool up) {
  std::thread([&] {
    Enter(host);
    Configure(fmt::format("ip link set tun0 {}", up ? "up" : "down"));
  }).join();
}

void PacketNetwork::Carry() {
  std::vector<pollfd> polled;
  for (const UniqueFd& tunnel : tunnels_) polled.push_back({tunnel.get(), POLLIN, 0});
  while (!stopping_) {
    poll(polled.data(), polled.size(), late_.empty() ? 20 : 1);
    for (const UniqueFd& tunnel : tunnels_) {
      std::vector<char> bytes(4096);
      for (ssize_t got; (got = read(tunnel.get(), bytes.data(), bytes.size())) > 0;)
        Route({bytes.begin(), bytes.begin() + got});
    }
    const auto now = steady_clock::now();
    for (size_t i = 0; i < late_.size();) {
      if (late_[i].due > now) {
        ++i;
        continue;
      }
      Put(late_[i]);
      late_.erase(late_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

// By the last number of its destination, in an IPv4 packet.
void PacketNetwork::Route(std::vector<char> bytes) {
  constexpr size_t kLastOfDestination = 19;
  if (bytes.size() <= kLastOfDestination || (bytes[0] >> 4) != 4) return;
  const size_t host = static_cast<unsigned char>(bytes[kLastOfDestination]) - size_t{1};
  if (host >= tunnels_.size()) return;
  const std::lock_guard lock(mutex_);
  std::uniform_real_distribution<double> chance;
  if (chance(random_) < weather_.loss) {
    ++lost_count_;
    return;
  }
  const bool late = chance(random_) < weather_.late;
  Packet packet{steady_clock::now() + (late ? weather_.by : milliseconds(0)), host,
                std::move(bytes)};
  if (late) {
    ++late_count_;
    late_.push_back(std::move(packet));
  } else {
    Put(packet);
  }
}

// Where the link is down it is lost.
void PacketNetwork::Put(const Packet& packet) {
  [[maybe_unused]] const ssize_t written =
      write(tunnels_[packet.host].get(), packet.bytes.data(), packet.bytes.size());
}

}  // namespace ringmaster::collectives::testing

// A network of packets: hosts in network namespaces of their own, between which this process
// carries what they send, and loses, delays and reorders it. Needs root and /dev/net/tun; touches
// nothing outside its namespaces, which go with it.
//
//   PacketNetwork network(2, seed);
//   network.SetWeather({.loss = 0.01});
//   std::thread([&] { network.Enter(1); ...listens at PacketNetwork::Address(1) + ":0"... });
//
// Thread-safe once it is made; one thread of its own carries the packets.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_PACKET_NETWORK_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_PACKET_NETWORK_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/file.h"

namespace ringmaster::collectives::testing {

class PacketNetwork {
 public:
  struct Weather {
    double loss = 0;
    double late = 0;  // packets that wait, so that those behind them overtake
    std::chrono::milliseconds by{0};
  };

  static bool IsPossible();
  static std::string Address(int host);

  PacketNetwork(int hosts, unsigned seed);
  ~PacketNetwork();
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  void SetWeather(const Weather& weather);

  // The calling thread, and those that it starts, belong to the host from here on.
  void Enter(int host);
  void SetLink(int host, bool up);

  // Packets that the weather has taken, and that it has let others overtake.
  uint64_t lost() const { return lost_count_; }
  uint64_t late() const { return late_count_; }

 private:
  struct Packet {
    std::chrono::steady_clock::time_point due;
    size_t host;
    std::vector<char> bytes;
  };

  void Carry();
  void Route(std::vector<char> bytes);
  void Put(const Packet& packet);

  std::vector<UniqueFd> spaces_;
  std::vector<UniqueFd> tunnels_;
  std::mutex mutex_;
  Weather weather_;
  std::mt19937 random_;
  std::deque<Packet> late_;  // the carrier's own
  std::atomic<uint64_t> lost_count_ = 0;
  std::atomic<uint64_t> late_count_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread carrier_;
};

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_PACKET_NETWORK_H_

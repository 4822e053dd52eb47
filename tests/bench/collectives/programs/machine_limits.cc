// What this machine's memory and sockets can do at all: the lines that the collectives are drawn
// beside. Prints JSON.
//
//   machine_limits 2
//   machine_limits 2 line      line_us alone, in a few milliseconds
//
// memcpy_gbs: bytes copied per second by each of RANKS processes that copy at once, of 64 MiB.
// socket_gbs: bytes per second that each of RANKS processes sends over loopback TCP to its next
//             while it receives as much from the one before, in a ring.
// socket_us:  half a round trip of 4 bytes between two processes that block in read.
// line_us:    half a round trip of a cache line between two processes that spin on it; the least of
//             several tries.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <poll.h>
#include <sched.h>
#include <vector>

#include <sys/socket.h>

#include "tests/bench/collectives/programs/local_ranks.h"

using namespace ringmaster::bench;

namespace {

constexpr size_t kCopy = size_t{64} << 20;
constexpr size_t kStream = size_t{512} << 20;
constexpr size_t kBlock = size_t{256} << 10;
constexpr int kTrips = 20000;
constexpr int kLineTries = 5;  // the least counts: others may take a processor for a while

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The mean of what `body` returns in `ranks` processes.
double MeanOf(int ranks, const std::function<double(int, Meeting&)>& body) {
  double* figures = Shared<double>(static_cast<size_t>(ranks));
  RunRanks(ranks, [&](int rank, Meeting& meeting) { figures[rank] = body(rank, meeting); });
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += figures[rank];
  return sum / ranks;
}

double Memcpy(int ranks, Meeting& meeting) {
  std::vector<char> from(kCopy, 1);
  std::vector<char> into(kCopy, 2);
  meeting.Wait(ranks);
  const auto start = Clock::now();
  int copies = 0;
  for (; copies < 4 || Since(start) < 0.3; ++copies) std::memcpy(into.data(), from.data(), kCopy);
  return static_cast<double>(kCopy) * copies / Since(start) / 1e9;
}

double Stream(int to_next, int from_previous, int ranks, Meeting& meeting) {
  const std::vector<char> out(kBlock, 1);
  std::vector<char> in(kBlock);
  meeting.Wait(ranks);
  const auto start = Clock::now();
  size_t sent = 0;
  size_t received = 0;
  while (sent < kStream || received < kStream) {
    pollfd fds[2] = {{to_next, static_cast<short>(sent < kStream ? POLLOUT : 0), 0},
                     {from_previous, static_cast<short>(received < kStream ? POLLIN : 0), 0}};
    Check(poll(fds, 2, -1) > 0, "poll");
    if (fds[0].revents != 0) {
      const ssize_t n = send(to_next, out.data(), kBlock, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<size_t>(n);
    }
    if (fds[1].revents != 0) {
      const ssize_t n = recv(from_previous, in.data(), kBlock, MSG_DONTWAIT);
      Check(n != 0, "a stream ended early");
      if (n > 0) received += static_cast<size_t>(n);
    }
  }
  return static_cast<double>(kStream) / Since(start) / 1e9;
}

double SocketTrip(int fd, int rank, Meeting& meeting) {
  int word = 0;
  meeting.Wait(2);
  const auto start = Clock::now();
  for (int i = 0; i < kTrips; ++i) {
    if (rank == 0) Check(send(fd, &word, sizeof(word), 0) == sizeof(word), "send");
    Check(recv(fd, &word, sizeof(word), MSG_WAITALL) == sizeof(word), "recv");
    if (rank == 1) Check(send(fd, &word, sizeof(word), 0) == sizeof(word), "send");
  }
  return Since(start) / kTrips / 2 * 1e6;
}

// Puts each rank on a processor of its own, as far as there are as many: two that have just started
// may share one for longer than this measures.
void BindToOwnProcessor(int rank) {
  cpu_set_t allowed;
  Check(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
  int place = rank % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || place-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    Check(sched_setaffinity(0, sizeof(own), &own) == 0, "sched_setaffinity");
    return;
  }
}

double LineTrip(std::atomic<int>* line, int rank, Meeting& meeting) {
  BindToOwnProcessor(rank);
  meeting.Wait(2);
  const auto start = Clock::now();
  for (int i = 0; i < kTrips; ++i) {
    const int mine = 2 * i + rank;
    for (long spins = 0; line->load(std::memory_order_acquire) != mine;) {
      if (++spins % 10000 == 0) sched_yield();
    }
    line->store(mine + 1, std::memory_order_release);
  }
  return Since(start) / kTrips / 2 * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc >= 2 ? std::atoi(argv[1]) : 0;
  const bool line_alone = argc == 3 && std::strcmp(argv[2], "line") == 0;
  if (ranks < 2 || ranks > 64 || (argc != 2 && !line_alone)) {
    std::fprintf(stderr, "usage: machine_limits RANKS [line], 2 to 64 ranks\n");
    return 64;
  }
  double line_us = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kLineTries; ++i) {
    auto* line = new (Shared<std::atomic<int>>(1)) std::atomic<int>(0);
    line_us = std::min(line_us, MeanOf(2, [&](int rank, Meeting& meeting) {
                         return LineTrip(line, rank, meeting);
                       }));
  }
  if (line_alone) {
    std::printf("{\"line_us\":%.4f}\n", line_us);
    return 0;
  }
  std::vector<Wire> wires;  // wire r leads from rank r to the next
  for (int rank = 0; rank < ranks; ++rank) wires.push_back(Connect());
  const auto all = static_cast<size_t>(ranks);
  std::printf(
      "{\"ranks\":%d,\"memcpy_gbs\":%.3f,\"socket_gbs\":%.3f,\"socket_us\":%.3f,\"line_us\":%.4f}"
      "\n",
      ranks, MeanOf(ranks, [&](int, Meeting& meeting) { return Memcpy(ranks, meeting); }),
      MeanOf(ranks,
             [&](int rank, Meeting& meeting) {
               const auto r = static_cast<size_t>(rank);
               return Stream(wires[r].ends[0], wires[(r + all - 1) % all].ends[1], ranks, meeting);
             }),
      MeanOf(2, [&](int rank,
                    Meeting& meeting) { return SocketTrip(wires[0].ends[rank], rank, meeting); }),
      line_us);
  return 0;
}

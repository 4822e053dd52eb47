// A ring allreduce of f32 written by hand over bare loopback sockets, in place, by the benchmark's
// loop: what plain TCP carries where nothing frames, checks, times or schedules what is sent.
//
//   socket_ring 2 4:1000,1048576:50
//   socket_ring 2 1048576:500 --streams 2      each chunk over so many connections at once
//   socket_ring 2 1048576:500 --zero-copy      MSG_ZEROCOPY; two ranks
//
// Each rank sends a chunk to its next and adds what comes from the one before as it comes. Where
// there is a core for each rank it never sleeps.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "tests/bench/collectives/programs/local_ranks.h"
#include "tests/bench/collectives/programs/points.h"

using namespace ringmaster::bench;

namespace {

struct Ring {
  int rank = 0;
  int ranks = 0;
  std::vector<int> to_next{};        // by stream
  std::vector<int> from_previous{};  // by stream
  bool spins = false;
  bool zero_copy = false;
  std::vector<float> arrived{};
};

// Of what one stream carries of a chunk.
struct Progress {
  std::span<const std::byte> out{};
  std::span<float> in{};
  std::span<float> into{};  // where it arrives: `in`, or what is then added to it
  size_t sent = 0;
  size_t received = 0;
  size_t added = 0;

  bool done() const { return sent == out.size() && received == into.size_bytes(); }
};

template <typename T>
std::span<T> Part(std::span<T> whole, size_t part, size_t parts) {
  const size_t begin = whole.size() * part / parts;
  return whole.subspan(begin, whole.size() * (part + 1) / parts - begin);
}

// The part of `values` that is chunk `number`, counted around the ring.
std::span<float> Chunk(const Ring& ring, std::vector<float>& values, int number) {
  const auto part = static_cast<size_t>((number + 2 * ring.ranks) % ring.ranks);
  return Part(std::span(values), part, static_cast<size_t>(ring.ranks));
}

// The kernel says on the socket's error queue which pages it needs no longer. Between two ranks the
// ring's own order keeps them from being written to before.
void ReapCompletions(int fd) {
  char control[128];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
}

// What send or recv has moved.
size_t Moved(ssize_t n) {
  Check(n >= 0 || errno == EAGAIN || errno == ENOBUFS || errno == EINTR, "a connection");
  return static_cast<size_t>(std::max<ssize_t>(n, 0));
}

void Move(Ring& ring, size_t stream, Progress& at) {
  if (at.sent < at.out.size()) {
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (ring.zero_copy ? MSG_ZEROCOPY : 0);
    at.sent +=
        Moved(send(ring.to_next[stream], at.out.data() + at.sent, at.out.size() - at.sent, flags));
    if (ring.zero_copy) ReapCompletions(ring.to_next[stream]);
  }
  const auto into = std::as_writable_bytes(at.into);
  if (at.received < into.size()) {
    at.received += Moved(recv(ring.from_previous[stream], into.data() + at.received,
                              into.size() - at.received, MSG_DONTWAIT));
  }
  if (at.into.data() == at.in.data()) return;
  for (; at.added < at.received / sizeof(float); ++at.added) at.in[at.added] += at.into[at.added];
}

void AwaitAny(const Ring& ring, const std::vector<Progress>& streams) {
  std::vector<pollfd> fds;
  for (size_t i = 0; i < streams.size(); ++i) {
    const Progress& at = streams[i];
    fds.push_back({ring.to_next[i], static_cast<short>(at.sent < at.out.size() ? POLLOUT : 0), 0});
    fds.push_back({ring.from_previous[i],
                   static_cast<short>(at.received < at.into.size_bytes() ? POLLIN : 0), 0});
  }
  Check(poll(fds.data(), fds.size(), -1) > 0, "poll");
}

// Sends `out` while it receives `in`, to which it adds what comes, or puts it there.
void Step(Ring& ring, std::span<const float> out, std::span<float> in, bool add) {
  if (add && ring.arrived.size() < in.size()) ring.arrived.resize(in.size());
  const std::span<float> into = add ? std::span(ring.arrived).first(in.size()) : in;
  const size_t count = ring.to_next.size();
  std::vector<Progress> streams;
  for (size_t i = 0; i < count; ++i)
    streams.push_back(
        {std::as_bytes(Part(out, i, count)), Part(in, i, count), Part(into, i, count)});
  while (!std::ranges::all_of(streams, &Progress::done)) {
    if (!ring.spins) AwaitAny(ring, streams);
    for (size_t i = 0; i < count; ++i) Move(ring, i, streams[i]);
  }
}

void Allreduce(Ring& ring, std::vector<float>& values) {
  for (int step = 0; step < ring.ranks - 1; ++step) {
    Step(ring, Chunk(ring, values, ring.rank - step), Chunk(ring, values, ring.rank - step - 1),
         /*add=*/true);
  }
  for (int step = 0; step < ring.ranks - 1; ++step) {
    Step(ring, Chunk(ring, values, ring.rank + 1 - step), Chunk(ring, values, ring.rank - step),
         /*add=*/false);
  }
}

struct Figures {
  double seconds = 0;
  double wrong = 0;
  double step_ns = 0;
};

Figures Measure(Ring& ring, const Point& point) {
  std::vector<float> values(point.bytes / sizeof(float));
  Fill(ring.rank, values);
  Allreduce(ring, values);
  const auto wrong = static_cast<double>(CountWrong(ring.ranks, values));
  std::fill(values.begin(), values.end(), 0.0f);
  std::vector<float> one(static_cast<size_t>(ring.ranks));
  const Timed timed = TimeOf(
      point, [&] { Allreduce(ring, one); }, [&] { Allreduce(ring, values); });
  return {timed.seconds, wrong, timed.step_ns};
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc >= 3 ? std::atoi(argv[1]) : 0;
  int streams = 1;
  bool zero_copy = false;
  bool understood = ranks >= 2 && ranks <= 64;
  for (int i = 3; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--zero-copy") {
      zero_copy = true;
    } else if (flag == "--streams" && i + 1 < argc) {
      streams = std::atoi(argv[++i]);
    } else {
      understood = false;
    }
  }
  if (zero_copy && ranks != 2) understood = false;
  if (!understood || streams < 1 || streams > 16) {
    std::fprintf(stderr,
                 "usage: socket_ring RANKS BYTES:CALLS,... [--streams N] [--zero-copy]; 2 to 64 "
                 "ranks, 1 to 16 streams\n");
    return 64;
  }
  const std::vector<Point> points = ParsePoints(argv[2]);
  const bool spins = ranks <= static_cast<int>(std::thread::hardware_concurrency());
  const auto all = static_cast<size_t>(ranks);
  std::vector<std::vector<Wire>> wires(all);  // those of r lead from rank r to the next
  for (auto& one : wires) {
    for (int i = 0; i < streams; ++i) one.push_back(Connect());
    for (const Wire& wire : one) {
      const int on = 1;
      if (zero_copy)
        Check(setsockopt(wire.ends[0], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) == 0, "zero copy");
    }
  }
  auto* figures = Shared<Figures>(points.size() * all);
  RunRanks(ranks, [&](int rank, Meeting&) {
    const auto r = static_cast<size_t>(rank);
    Ring ring{.rank = rank, .ranks = ranks, .spins = spins, .zero_copy = zero_copy};
    for (const Wire& wire : wires[r]) ring.to_next.push_back(wire.ends[0]);
    for (const Wire& wire : wires[(r + all - 1) % all]) ring.from_previous.push_back(wire.ends[1]);
    for (size_t i = 0; i < points.size(); ++i) figures[i * all + r] = Measure(ring, points[i]);
  });
  for (size_t i = 0; i < points.size(); ++i) {
    Figures sum;
    for (const Figures& one : std::span(figures + i * all, all)) {
      sum.seconds += one.seconds;
      sum.wrong += one.wrong;
      sum.step_ns = std::max(sum.step_ns, one.step_ns);
    }
    Print(points[i], sum.seconds / ranks, sum.wrong, sum.step_ns);
  }
  return 0;
}

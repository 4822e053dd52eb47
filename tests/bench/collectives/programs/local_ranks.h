// Ranks as processes of this machine, without any library: what they share, how they meet, and TCP
// connections between them. Whatever fails ends the program, and with it its ranks.
#ifndef RINGMASTER_TESTS_BENCH_COLLECTIVES_PROGRAMS_LOCAL_RANKS_H_
#define RINGMASTER_TESTS_BENCH_COLLECTIVES_PROGRAMS_LOCAL_RANKS_H_

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <sched.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace ringmaster::bench {

[[noreturn]] inline void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

inline void Check(bool ok, const char* what) {
  if (!ok) Die(what);
}

template <typename T>
T* Shared(size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(memory != MAP_FAILED, "mmap");
  return static_cast<T*>(memory);
}

// Of all ranks, once.
struct Meeting {
  std::atomic<int> arrived{0};
  void Wait(int all) {
    arrived.fetch_add(1);
    while (arrived.load() < all) sched_yield();
  }
};

// Runs `body` in `ranks` processes, and waits for all of them. Where one fails, all end.
inline void RunRanks(int ranks, const std::function<void(int, Meeting&)>& body) {
  auto* meeting = new (Shared<Meeting>(1)) Meeting;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    Check(pid >= 0, "fork");
    if (pid != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body(rank, *meeting);
    _exit(0);
  }
  for (int status = 0; wait(&status) > 0;) {
    if (status != 0) std::exit(1);
  }
}

struct Wire {
  int ends[2];
};

// Two connected TCP sockets of loopback.
inline Wire Connect() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  Check(bind(listener, any, size) == 0 && listen(listener, 1) == 0 &&
            getsockname(listener, any, &size) == 0,
        "listen");
  Wire wire{};
  wire.ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  Check(connect(wire.ends[0], any, size) == 0, "connect");
  wire.ends[1] = accept(listener, nullptr, nullptr);
  Check(wire.ends[1] >= 0, "accept");
  const int on = 1;
  for (const int fd : wire.ends) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // As ours takes: some machines' default paces what needs no pace here. Without it, theirs.
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  }
  close(listener);
  return wire;
}

}  // namespace ringmaster::bench

#endif  // RINGMASTER_TESTS_BENCH_COLLECTIVES_PROGRAMS_LOCAL_RANKS_H_

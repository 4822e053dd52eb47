// A network that can be broken: TCP connections through a relay of this process.
//
//   Relay relay;
//   options.members[1].address = relay.Open(options.members[1].address);
//   ...
//   relay.Freeze();   // as when a cable is pulled
//
// One door per target; whoever connects to it is passed on, both ways. Nothing waits for the other
// side, and what a mode below says holds for every connection that there is from the moment of the
// call. Thread-safe; one thread of its own moves the bytes.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_RELAY_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_RELAY_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/file.h"
#include "runtime/collectives/transport/tcp/socket.h"

namespace ringmaster::collectives::testing {

class Relay {
 public:
  Relay();
  ~Relay();

  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // A door to the "address:port" `target`: its own address.
  std::string Open(const std::string& target);

  // Drops what there is, and passes everything on from here on. So it is at first.
  void Pass();
  // Nothing moves any more, and nothing is closed.
  void Freeze();
  // All connections are reset, and new ones at once.
  void Reset();
  // Resets when it has passed on so many more bytes, of all connections together.
  void ResetAfter(uint64_t bytes);
  // Each direction of a connection moves at most `bytes` at once, and rests before: a byte takes so
  // long, and so many of them no longer.
  void Chop(size_t bytes, std::chrono::microseconds rest);
  // Turns a bit around in the byte that is passed on after `at` more, of all connections together.
  void Flip(uint64_t at);
  // Other bytes come out than go in, from here on and in all connections.
  void Garble();
  // Keeps what is passed on from here on, of all connections together, in the order in which it is.
  void Record();
  // The next `count` connections are reset when the first byte comes through.
  void DropNext(int count);

  // Passed on since Pass.
  uint64_t bytes() const;
  // Sleeps until so many are. False: `patience` has passed before.
  bool AwaitBytes(uint64_t bytes, std::chrono::milliseconds patience) const;
  std::string recorded() const;

 private:
  enum class Mode { kPass, kFrozen, kReset };
  struct Direction {
    std::vector<std::byte> held;
    SteadyTime next{};  // when it may write again
    bool ended = false;
    bool closed = false;  // and the other side was told
  };
  struct Connection {
    UniqueFd ends[2];         // who dialed, and the target
    Direction directions[2];  // from ends[i] to the other
    bool doomed = false;
    bool over() const { return directions[0].closed && directions[1].closed; }
  };
  struct Door {
    UniqueFd listening;
    tcp::SocketAddress target;
  };

  void Loop();
  void Accept(Door& door);
  // False: the connection is to be reset.
  bool Move(Connection& connection, SteadyTime now);
  void Rest(Direction& direction) const;
  bool MoveOneWay(Connection& connection, int from, SteadyTime now);
  void ResetAll();  // with mutex_ held
  void Enter(Mode mode);

  mutable std::mutex mutex_;
  mutable std::condition_variable passed_on_;
  tcp::WakeUp wake_;
  Mode mode_ = Mode::kPass;
  bool stopping_ = false;
  std::list<Door> doors_;
  std::list<Connection> connections_;
  uint64_t bytes_ = 0;
  uint64_t limit_ = UINT64_MAX;
  size_t most_ = SIZE_MAX;
  std::chrono::microseconds rest_{0};
  int to_drop_ = 0;
  uint64_t flip_at_ = UINT64_MAX;
  bool garbles_ = false;
  bool records_ = false;
  std::string recorded_;
  std::vector<std::byte> gulp_;  // what a connection says at once; made and looked at by Loop alone
  std::thread thread_;
};

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_RELAY_H_

// Ranks as threads of one test, each with its own listener on its own loopback address.
//
//   Group group(3);
//   group.Run([](Communicator& comm) { ASSERT_TRUE(comm.Barrier("b").ok()); });
//
// Run opens a new round, runs the body on every rank at once and joins; a rank's communicator is
// destroyed when its body returns. Listeners live as long as the group.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_GROUP_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_GROUP_H_

#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/transport/tcp/listener.h"

namespace ringmaster::collectives::testing {

// What carries data between the ranks of a group.
enum class Wires {
  kShared,  // memory, between all
  kTcp,     // TCP, between all
  kMixed,   // TCP to every third rank, memory between the others
  kTls,     // TCP between all, encrypted
};
inline constexpr Wires kAllWires[] = {Wires::kShared, Wires::kTcp, Wires::kMixed, Wires::kTls};

class Group {
 public:
  explicit Group(int world, Wires wires = Wires::kShared);

  // What every rank opens the next round with; change it before Run. `rank` is set per rank.
  CommunicatorOptions options;

  void Run(const std::function<void(Communicator&)>& body);

  // For tests that open rounds by hand.
  CommunicatorOptions OptionsFor(int rank) const;
  std::unique_ptr<Communicator> Open(int rank);
  tcp::Listener& listener(int rank) { return *listeners_[rank]; }

 private:
  const Wires wires_;
  std::vector<std::unique_ptr<tcp::Listener>> listeners_;
};

// For the names of tests: "Shared", "Tcp", "Mixed", "Tls".
std::string NameOf(Wires wires);

// What rank `rank` is to be told, so that these are the group's wires.
TransportChoice ChoiceOf(Wires wires, int rank);
Encryption EncryptionOf(Wires wires);

// Runs body(0) ... body(count - 1), each on a thread, and joins them.
void RunThreads(int count, const std::function<void(int)>& body);

// Every pair of ranks exchanges something, so that all connections are made; nobody returns before
// all are done.
void Meet(Communicator& comm, std::barrier<>& everybody);

// "127.a.b.c:0", an address of this process's own for `index`.
std::string LoopbackAddress(int index);

// Generous, for machines with less cores than ranks.
inline constexpr std::chrono::seconds kPatience{60};

// The operation timeout of tests that let it pass: more than a rank that works may be kept off a
// busy machine's processors.
inline constexpr std::chrono::milliseconds kImpatience{3000};

// Whether most of up to nine trials take less than `bound`, as the median does: a busy machine
// disturbs some. Ends when five have, or have not.
bool MostTakeLessThan(std::chrono::milliseconds bound,
                      const std::function<std::chrono::steady_clock::duration()>& trial);

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_GROUP_H_

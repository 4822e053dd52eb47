#include "runtime/collectives/testing/group.h"

#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ringmaster::collectives::testing {

std::string LoopbackAddress(int index) {
  const int process = getpid();
  return fmt::format("127.{}.{}.{}:0", 64 + (process >> 8) % 128, process & 0xff, 1 + index);
}

void RunThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

void Meet(Communicator& comm, std::barrier<>& everybody) {
  const auto world = static_cast<size_t>(comm.world());
  const std::vector<size_t> ones(world, 1);
  std::vector<float> all(world);
  EXPECT_TRUE(comm.AllToAll(std::vector<float>(world), ones, all, ones, "meet").ok())
      << comm.status();
  everybody.arrive_and_wait();
}

bool MostTakeLessThan(std::chrono::milliseconds bound,
                      const std::function<std::chrono::steady_clock::duration()>& trial) {
  constexpr int kMost = 5;  // of nine
  int fast = 0;
  int slow = 0;
  while (fast < kMost && slow < kMost) ++(trial() < bound ? fast : slow);
  return fast == kMost;
}

std::string NameOf(Wires wires) {
  static constexpr const char* kNames[] = {"Shared", "Tcp", "Mixed", "Tls"};
  return kNames[static_cast<size_t>(wires)];
}

TransportChoice ChoiceOf(Wires wires, int rank) {
  const bool tcp =
      wires == Wires::kTcp || wires == Wires::kTls || (wires == Wires::kMixed && rank % 3 == 0);
  return tcp ? TransportChoice::kTcp : TransportChoice::kAuto;
}

Encryption EncryptionOf(Wires wires) {
  return wires == Wires::kTls ? Encryption::kTls : Encryption::kNone;
}

Group::Group(int world, Wires wires) : wires_(wires) {
  options.job = "test/group";
  options.encryption = EncryptionOf(wires);
  options.key = "a key that only the members know";
  options.connect_timeout = kPatience;
  options.operation_timeout = kPatience;
  for (int rank = 0; rank < world; ++rank) {
    auto listener = tcp::Listener::Open(LoopbackAddress(rank));
    if (!listener.ok()) {
      ADD_FAILURE() << listener.status();
      return;
    }
    options.members.push_back({(*listener)->address(), fmt::format("uid-{}", rank)});
    listeners_.push_back(std::move(*listener));
  }
}

CommunicatorOptions Group::OptionsFor(int rank) const {
  CommunicatorOptions mine = options;
  mine.rank = rank;
  if (mine.transport == TransportChoice::kAuto) mine.transport = ChoiceOf(wires_, rank);
  return mine;
}

std::unique_ptr<Communicator> Group::Open(int rank) {
  auto communicator = Communicator::Create(OptionsFor(rank), listener(rank));
  EXPECT_TRUE(communicator.ok()) << communicator.status();
  return communicator.ok() ? std::move(*communicator) : nullptr;
}

void Group::Run(const std::function<void(Communicator&)>& body) {
  ++options.round;
  RunThreads(options.world(), [&](int rank) {
    const std::unique_ptr<Communicator> communicator = Open(rank);
    if (communicator != nullptr) body(*communicator);
  });
}

}  // namespace ringmaster::collectives::testing

// Which of the transports a group may use, and what hides their bytes.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_CHOICE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_CHOICE_H_

namespace ringmaster::collectives {

// What carries the bytes between two ranks. Connections, failures and deadlines are TCP's in each.
enum class TransportChoice {
  kAuto,          // shared memory between ranks that find themselves on one machine, else TCP
  kTcp,           // TCP, also on one machine
  kSharedMemory,  // shared memory; ranks that share none fail
};

// What hides from the network what goes over it; the same on both ends of a connection. What goes
// through memory that two ranks share does not leave the machine, and is never encrypted.
enum class Encryption {
  kNone,
  kTls,  // TLS 1.3 on every connection, with keys that come from the round's
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_CHOICE_H_

// Which of the transports a group may use.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_CHOICE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_CHOICE_H_

namespace ringmaster::collectives {

// What carries the bytes between two ranks. Connections, failures and deadlines are TCP's in each.
enum class TransportChoice {
  kAuto,          // shared memory between ranks that find themselves on one machine, else TCP
  kTcp,           // TCP, also on one machine
  kSharedMemory,  // shared memory; ranks that share none fail
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_CHOICE_H_

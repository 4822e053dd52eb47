// Reconcile's plain values as messages of the protocol.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_MESSAGES_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_MESSAGES_H_

#include <string>

#include "operator/reconcile/worker_command.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::rendezvous {

// The round as the member of this rank is told it.
v1::ToWorker RoundMessage(const reconcile::Announcement& round, int rank, const std::string& key);

v1::ToWorker CommandMessage(const reconcile::WorkerCommand& command);

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_MESSAGES_H_

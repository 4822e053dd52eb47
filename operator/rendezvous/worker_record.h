// What one worker's events make of what is known of it. Pure: a view, an event, a time.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_WORKER_RECORD_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_WORKER_RECORD_H_

#include <cstdint>

#include "common/clock.h"
#include "operator/reconcile/worker_view.h"

namespace ringmaster::rendezvous {

namespace v1 {
class Event;
}

enum class Effect {
  kNone,      // nothing new: an older round's event, or one repeated after a new dial
  kProgress,  // a newer step: worth a look now and then
  kChanged,   // worth a look at once
};

// Reports that are kept of each kind, newest last; a worker cannot make the operator's memory grow.
inline constexpr size_t kReportsKept = 64;

// Takes the event into the view. An event that speaks of a round older than `announced` (0 where
// none was announced yet) is dropped, unless it speaks of the worker itself and not of the round:
// Ready, DrainRequested, Drained and Exited.
Effect Apply(const v1::Event& event, std::int64_t announced, Time now, reconcile::WorkerView& view);

// The worker is in this round now: what it reported of shards in others is history.
Effect MoveToRound(std::int64_t round, reconcile::WorkerView& view);

// The checkpoint of this step exists: reports of it and of those before have been used.
void ForgetShardsUpTo(std::int64_t step, reconcile::WorkerView& view);

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_WORKER_RECORD_H_

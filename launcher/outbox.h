// What the operator must hear of this worker: kept here while the stream is down, and said again on
// every new stream, since the operator on its other end may be a new one that knows nothing.
//
// It is a state, not a queue, so it stays small however long the operator is away: of Ready,
// Progress, Finished, Drained, DrainRequested and Exited only the newest; of shards, troubles and
// lost peers a bounded number; of a round that is over nothing but what speaks of the worker.
// Not thread-safe.
#ifndef RINGMASTER_LAUNCHER_OUTBOX_H_
#define RINGMASTER_LAUNCHER_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::launcher {

class Outbox {
 public:
  static constexpr size_t kKeptOfAKind = 64;

  void Add(rendezvous::v1::Event event);
  // The next one that this stream has not carried; marks it as carried.
  std::optional<rendezvous::v1::Event> Next();
  bool HasNext() const;
  // A new stream has carried nothing.
  void Rewind();

  // The worker is in this round now.
  void EnterRound(std::int64_t round);
  // The checkpoint of this step exists; reports of its shards have served.
  void ForgetShardsUpTo(std::int64_t step);

 private:
  struct Entry {
    rendezvous::v1::Event event;
    bool carried = false;
  };
  void DropReplaced(const rendezvous::v1::Event& by);
  void DropSurplus(rendezvous::v1::Event::KindCase kind);

  std::list<Entry> entries_;
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_OUTBOX_H_

#include "launcher/outbox.h"

#include <algorithm>

namespace ringmaster::launcher {
namespace {

using rendezvous::v1::Event;

// Several of these are true at once; of the other kinds the newest is all there is to know.
bool Accumulates(Event::KindCase kind) {
  return kind == Event::kShardDurable || kind == Event::kCheckpointFailed ||
         kind == Event::kCheckpointRejected || kind == Event::kPeerLost;
}

// Says something of a round, and nothing once that is over.
bool BelongsToRound(Event::KindCase kind) {
  return Accumulates(kind) || kind == Event::kProgress || kind == Event::kFinished;
}

bool SameShard(const Event& a, const Event& b) {
  return a.has_shard_durable() && b.has_shard_durable() &&
         a.shard_durable().step() == b.shard_durable().step();
}

}  // namespace

void Outbox::Add(Event event) {
  DropReplaced(event);
  const Event::KindCase kind = event.kind_case();
  entries_.push_back({std::move(event)});
  DropSurplus(kind);
}

void Outbox::DropReplaced(const Event& by) {
  entries_.remove_if([&](const Entry& entry) {
    if (Accumulates(by.kind_case())) return SameShard(entry.event, by);
    return entry.event.kind_case() == by.kind_case();
  });
}

void Outbox::DropSurplus(Event::KindCase kind) {
  const auto of_kind = [&](const Entry& entry) { return entry.event.kind_case() == kind; };
  if (std::count_if(entries_.begin(), entries_.end(), of_kind) <=
      static_cast<std::ptrdiff_t>(kKeptOfAKind))
    return;
  entries_.erase(std::find_if(entries_.begin(), entries_.end(), of_kind));
}

std::optional<Event> Outbox::Next() {
  for (Entry& entry : entries_) {
    if (entry.carried) continue;
    entry.carried = true;
    return entry.event;
  }
  return std::nullopt;
}

bool Outbox::HasNext() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return !entry.carried; });
}

void Outbox::Rewind() {
  for (Entry& entry : entries_) entry.carried = false;
}

void Outbox::EnterRound(std::int64_t round) {
  entries_.remove_if([&](const Entry& entry) {
    return BelongsToRound(entry.event.kind_case()) && entry.event.round() < round;
  });
}

void Outbox::ForgetShardsUpTo(std::int64_t step) {
  entries_.remove_if([&](const Entry& entry) {
    return entry.event.has_shard_durable() && entry.event.shard_durable().step() <= step;
  });
}

}  // namespace ringmaster::launcher

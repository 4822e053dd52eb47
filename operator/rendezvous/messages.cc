#include "operator/rendezvous/messages.h"

namespace ringmaster::rendezvous {
namespace {

void Fill(const reconcile::CheckpointRef& from, v1::CheckpointRef* to) {
  to->set_step(from.step);
  to->set_round(from.round);
  to->set_digest(from.digest);
  to->set_world_size(from.world_size);
}

void Fill(const reconcile::DrainCommand& from, v1::Command* to) {
  to->mutable_drain()->set_reason(from.reason);
}

void Fill(const reconcile::CheckpointNowCommand&, v1::Command* to) {
  to->mutable_checkpoint_now();
}

void Fill(const reconcile::StopCommand& from, v1::Command* to) {
  to->mutable_stop()->set_reason(from.reason);
}

void Fill(const reconcile::CheckpointCommittedCommand& from, v1::Command* to) {
  v1::CheckpointCommitted& committed = *to->mutable_checkpoint_committed();
  Fill(from.checkpoint, committed.mutable_checkpoint());
  for (const reconcile::CheckpointRef& dropped : from.dropped)
    Fill(dropped, committed.add_dropped());
}

}  // namespace

v1::ToWorker RoundMessage(const reconcile::Announcement& round, int rank, const std::string& key) {
  v1::ToWorker message;
  v1::Round& out = *message.mutable_command()->mutable_round();
  out.set_number(round.round);
  out.set_rank(rank);
  for (const reconcile::RoundMember& member : round.members) {
    v1::Member& to = *out.add_members();
    to.set_rank(member.rank);
    to.set_pod(member.pod);
    to.set_pod_uid(member.pod_uid);
    to.set_address(member.address);
  }
  out.set_key(key);
  out.set_shards(round.shards);
  for (const reconcile::CheckpointRef& checkpoint : round.checkpoints)
    Fill(checkpoint, out.add_checkpoints());
  return message;
}

v1::ToWorker CommandMessage(const reconcile::WorkerCommand& command) {
  v1::ToWorker message;
  std::visit([&](const auto& alternative) { Fill(alternative, message.mutable_command()); },
             command);
  return message;
}

}  // namespace ringmaster::rendezvous

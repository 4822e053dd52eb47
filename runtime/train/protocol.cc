#include "runtime/train/protocol.h"

#include <fmt/format.h>

#include "common/check.h"
#include "common/status.h"
#include "ringmaster/rendezvous/v1/channel.pb.h"

namespace ringmaster::train {
namespace {

namespace v1 = rendezvous::v1;

checkpoint::CheckpointRef FromProto(const v1::CheckpointRef& ref) {
  return {.id = {.step = ref.step(), .round = ref.round(), .world_size = ref.world_size()},
          .digest = ref.digest()};
}

absl::StatusOr<Round> FromProto(const v1::Round& message) {
  Round round{.number = message.number(),
              .rank = message.rank(),
              .key = message.key(),
              .shards = message.shards()};
  for (const v1::Member& member : message.members()) {
    if (member.rank() != static_cast<int>(round.members.size())) {
      return absl::InvalidArgumentError(
          fmt::format("round {}: its members are not in the order of ranks", round.number));
    }
    round.members.push_back({.address = member.address(), .pod_uid = member.pod_uid()});
  }
  if (round.rank < 0 || round.rank >= static_cast<int>(round.members.size())) {
    return absl::InvalidArgumentError(fmt::format("round {}: rank {} is not one of its {} members",
                                                  round.number, round.rank, round.members.size()));
  }
  for (const v1::CheckpointRef& ref : message.checkpoints()) {
    round.checkpoints.push_back(FromProto(ref));
  }
  return round;
}

CheckpointCommitted FromProto(const v1::CheckpointCommitted& message) {
  CheckpointCommitted committed{.checkpoint = FromProto(message.checkpoint())};
  for (const v1::CheckpointRef& ref : message.dropped()) {
    committed.dropped.push_back(FromProto(ref));
  }
  return committed;
}

absl::StatusOr<std::optional<Command>> FromProto(const v1::Command& message) {
  switch (message.kind_case()) {
    case v1::Command::kRound: {
      RM_ASSIGN_OR_RETURN(Round round, FromProto(message.round()));
      return Command(std::move(round));
    }
    case v1::Command::kDrain:
      return Command(Drain{.reason = message.drain().reason()});
    case v1::Command::kCheckpointNow:
      return Command(CheckpointNow{});
    case v1::Command::kStop:
      return Command(Stop{message.stop().reason()});
    case v1::Command::kCheckpointCommitted:
      return Command(FromProto(message.checkpoint_committed()));
    case v1::Command::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

void Fill(const Ready& event, v1::Event& out) {
  v1::Ready& ready = *out.mutable_ready();
  ready.set_address(event.address);
  ready.set_kernels_digest(event.kernels_digest);
  ready.set_model(event.model);
  ready.set_parameters(event.parameters);
  ready.set_total_steps(event.total_steps);
}

// Who reads the accuracy alone takes a negative one for none.
double AccuracyOf(const std::optional<Evaluation>& evaluation) {
  return evaluation ? evaluation->accuracy : -1;
}

void Fill(const Evaluation& from, v1::Evaluation& to) {
  to.set_step(from.step);
  to.set_loss(from.loss);
  to.set_accuracy(from.accuracy);
  if (from.top5_accuracy) to.set_top5_accuracy(*from.top5_accuracy);
  if (from.perplexity) to.set_perplexity(*from.perplexity);
  if (from.auroc) to.set_auroc(*from.auroc);
}

void Fill(const Progress& event, v1::Event& out) {
  v1::Progress& progress = *out.mutable_progress();
  progress.Clear();
  progress.set_step(event.step);
  progress.set_total_steps(event.total_steps);
  progress.set_epoch(event.epoch);
  progress.set_loss(event.loss);
  progress.set_accuracy(AccuracyOf(event.evaluation));
  if (event.evaluation) Fill(*event.evaluation, *progress.mutable_evaluation());
  progress.set_samples_per_second(event.samples_per_second);
  progress.set_step_seconds(event.step_seconds);
  progress.set_allreduce_seconds(event.allreduce_seconds);
  progress.set_skipped_steps(event.skipped_steps);
}

void Fill(const ShardDurable& event, v1::Event& out) {
  v1::ShardDurable& durable = *out.mutable_shard_durable();
  durable.set_step(event.step);
  durable.set_digest(event.digest);
  durable.set_seconds(event.seconds);
  durable.set_bytes(event.bytes);
  if (event.metric_value) durable.set_metric_value(*event.metric_value);
}

void Fill(const CheckpointFailed& event, v1::Event& out) {
  out.mutable_checkpoint_failed()->set_step(event.step);
  out.mutable_checkpoint_failed()->set_message(event.message);
}

void Fill(const CheckpointRejected& event, v1::Event& out) {
  out.mutable_checkpoint_rejected()->set_step(event.step);
  out.mutable_checkpoint_rejected()->set_message(event.message);
}

void Fill(const PeerLost& event, v1::Event& out) {
  out.mutable_peer_lost()->set_rank(event.rank);
  out.mutable_peer_lost()->set_message(event.message);
}

void Fill(const Finished& event, v1::Event& out) {
  v1::Finished& finished = *out.mutable_finished();
  finished.set_weights_sha256(event.weights_sha256);
  finished.set_steps(event.steps);
  finished.set_accuracy(AccuracyOf(event.evaluation));
  finished.set_loss(event.loss);
  if (event.evaluation) Fill(*event.evaluation, *finished.mutable_evaluation());
  finished.set_stopped_early(event.stopped_early);
  for (const LabelAuroc& label : event.labels) {
    v1::LabelAuroc& to = *finished.add_labels();
    to.set_name(label.name);
    if (label.auroc) to.set_auroc(*label.auroc);
  }
  finished.set_skipped_steps(event.skipped_steps);
}

void Fill(const Drained& event, v1::Event& out) {
  out.mutable_drained()->set_step(event.step);
}

}  // namespace

absl::StatusOr<std::optional<Command>> DecodeCommand(std::string_view bytes) {
  v1::ToTrainer message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("the launcher sent bytes that are no message");
  }
  if (message.has_drain()) return Command(Drain{.reason = message.drain().reason(), .alone = true});
  if (message.has_command()) return FromProto(message.command());
  return std::nullopt;
}

EventEncoder::EventEncoder() : message_(std::make_unique<v1::FromTrainer>()) {}
EventEncoder::~EventEncoder() = default;

std::string_view EventEncoder::Encode(int64_t round, const Event& event) {
  // Clearing frees an event's kind, which the next Progress can have.
  if (!std::holds_alternative<Progress>(event)) message_->Clear();
  v1::Event& out = *message_->mutable_event();
  out.set_round(round);
  std::visit([&](const auto& kind) { Fill(kind, out); }, event);
  RM_CHECK(message_->SerializeToString(&bytes_), "an event has what its message needs");
  return bytes_;
}

}  // namespace ringmaster::train

// Translates between the protocol's messages (proto/ringmaster/rendezvous/v1) and the trainer's
// plain values. Pure functions.
#ifndef RINGMASTER_RUNTIME_TRAIN_PROTOCOL_H_
#define RINGMASTER_RUNTIME_TRAIN_PROTOCOL_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/train/messages.h"

namespace ringmaster::train {

// A serialised ToTrainer. Nothing for a kind that this version does not know; kInvalidArgument when
// the bytes are no such message, or a round that cannot be.
absl::StatusOr<std::optional<Command>> DecodeCommand(std::string_view bytes);

// A serialised FromTrainer.
std::string EncodeEvent(int64_t round, const Event& event);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_PROTOCOL_H_

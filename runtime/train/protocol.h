// Translates between the protocol's messages (proto/ringmaster/rendezvous/v1) and the trainer's
// plain values.
#ifndef RINGMASTER_RUNTIME_TRAIN_PROTOCOL_H_
#define RINGMASTER_RUNTIME_TRAIN_PROTOCOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/train/messages.h"

namespace ringmaster::rendezvous::v1 {
class FromTrainer;
}  // namespace ringmaster::rendezvous::v1

namespace ringmaster::train {

// A serialised ToTrainer. Nothing for a kind that this version does not know; kInvalidArgument when
// the bytes are no such message, or a round that cannot be.
absl::StatusOr<std::optional<Command>> DecodeCommand(std::string_view bytes);

// Serialises events, into memory that it keeps: a Progress that follows another one, as each step's
// does where steps are long, takes none. Not thread-safe.
class EventEncoder {
 public:
  EventEncoder();
  ~EventEncoder();

  // A serialised FromTrainer, there until the next call.
  std::string_view Encode(int64_t round, const Event& event);

 private:
  const std::unique_ptr<rendezvous::v1::FromTrainer> message_;
  std::string bytes_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_PROTOCOL_H_

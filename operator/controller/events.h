// Events: what happened to an object, for people (`kubectl describe`, `ringmaster get`).
//
// An Event object is named by a digest of (object's uid, type, reason, message), so the same
// happening, told again by this process or by its successor, raises `count` and `lastTimestamp` of
// the one object instead of adding another. Events are best effort: nothing may depend on one, and
// the reconciler ignores Record's status but for logging. Record them only after the write that
// they tell of has succeeded.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_EVENTS_H_
#define RINGMASTER_OPERATOR_CONTROLLER_EVENTS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/client.h"

namespace ringmaster::controller {

enum class EventType { kNormal, kWarning };

struct EventNote {
  EventType type = EventType::kNormal;
  std::string reason;   // CamelCase, a named constant: "PodCreated"
  std::string message;  // one sentence for a person; at most 1024 bytes are kept
};

// What an event keeps of a message: its first 1,024 bytes, cut between UTF-8 characters.
std::string CutMessage(const std::string& text);

// Thread-safe. Blocks as the client does.
class EventRecorder {
 public:
  // `component` is who reports, "ringmaster-operator". References must outlive the recorder.
  EventRecorder(kube::Client& client, const Clock& clock, std::string component);

  // Records that `note` happened to `object` (as stored: it needs a uid). A failure is logged and
  // returned.
  absl::Status Record(const kube::ResourceType& type, const kube::Json& object,
                      const EventNote& note);

 private:
  absl::Status CountAgain(const kube::ObjectKey& key);

  kube::Client& client_;
  const Clock& clock_;
  const std::string component_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_EVENTS_H_

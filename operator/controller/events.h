// Events: what happened to an object, for people (`kubectl describe`, `ringmaster get`).
//
// An Event object is named by a digest of (object's uid, type, reason, message), so the same
// happening, told again by this process or by its successor, raises `count` and `lastTimestamp` of
// the one object instead of adding another. Events are best effort: nothing may depend on one. Tell
// of a write only after it has succeeded.
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

// Who is told what happens. Thread-safe.
class EventSink {
 public:
  virtual ~EventSink() = default;

  // `note` happened to `object` (as stored: it needs a uid).
  virtual void Tell(const kube::ResourceType& type, const kube::Json& object,
                    const EventNote& note) = 0;
};

// Writes each event as it is told. Thread-safe. Blocks as the client does.
class EventRecorder : public EventSink {
 public:
  // `component` is who reports, "ringmaster-operator". References must outlive the recorder.
  EventRecorder(kube::Client& client, const Clock& clock, std::string component);

  // As Record, whose failure is logged.
  void Tell(const kube::ResourceType& type, const kube::Json& object,
            const EventNote& note) override;

  // Records that `note` happened to `object` now. A failure is logged and returned.
  absl::Status Record(const kube::ResourceType& type, const kube::Json& object,
                      const EventNote& note);

  // The two halves of Record: the Event object, of which the same happening makes one of the same
  // name, and its writing, at any later time. What is written counts as often as `count` says.
  kube::Json Make(const kube::ResourceType& type, const kube::Json& object,
                  const EventNote& note) const;
  absl::Status Write(const kube::Json& event);

 private:
  absl::Status CountAgain(const kube::Json& again);

  kube::Client& client_;
  const Clock& clock_;
  const std::string component_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_EVENTS_H_

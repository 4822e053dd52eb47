#include "operator/controller/events.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::controller {
namespace {

constexpr std::size_t kMessageLength = 1024;  // the API server refuses more
constexpr std::size_t kDigestLength = 16;
constexpr std::size_t kNameLength = 253;
constexpr int kAttempts = 3;

std::string_view Text(EventType type) {
  return type == EventType::kNormal ? "Normal" : "Warning";
}

std::string EventName(const kube::Json& object, const EventNote& note) {
  const std::string what =
      fmt::format("{}\n{}\n{}\n{}", kube::Uid(object), Text(note.type), note.reason, note.message);
  const std::string digest = Hex(Sha256Of(what)).substr(0, kDigestLength);
  return kube::Name(object).substr(0, kNameLength - kDigestLength - 1) + "." + digest;
}

}  // namespace

std::string CutMessage(const std::string& text) {
  std::size_t length = kMessageLength;
  if (text.size() <= length) return text;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  return text.substr(0, length);
}

EventRecorder::EventRecorder(kube::Client& client, const Clock& clock, std::string component)
    : client_(client), clock_(clock), component_(std::move(component)) {}

void EventRecorder::Tell(const kube::ResourceType& type, const kube::Json& object,
                         const EventNote& note) {
  Record(type, object, note).IgnoreError();
}

absl::Status EventRecorder::Record(const kube::ResourceType& type, const kube::Json& object,
                                   const EventNote& note) {
  return Write(Make(type, object, note));
}

kube::Json EventRecorder::Make(const kube::ResourceType& type, const kube::Json& object,
                               const EventNote& note) const {
  const std::string now = kube::MetaTime(clock_.Now());
  kube::Json event =
      kube::NewObject(kube::kEvent, {kube::Namespace(object), EventName(object, note)});
  event["involvedObject"] = {{"apiVersion", type.ApiVersion()},
                             {"kind", std::string(type.kind)},
                             {"namespace", kube::Namespace(object)},
                             {"name", kube::Name(object)},
                             {"uid", kube::Uid(object)},
                             {"resourceVersion", kube::ResourceVersion(object)}};
  event["type"] = std::string(Text(note.type));
  event["reason"] = note.reason;
  event["message"] = CutMessage(note.message);
  event["source"] = {{"component", component_}};
  event["firstTimestamp"] = now;
  event["lastTimestamp"] = now;
  event["count"] = 1;
  return event;
}

absl::Status EventRecorder::Write(const kube::Json& event) {
  absl::Status status = client_.Create(kube::kEvent, event).status();
  if (status.code() == absl::StatusCode::kAlreadyExists) status = CountAgain(event);
  if (!status.ok()) {
    log::Warning("an event was not recorded",
                 {{"object", kube::FindString(event, {"involvedObject", "name"})},
                  {"namespace", kube::Namespace(event)},
                  {"reason", kube::FindString(event, {"reason"})},
                  {"error", status}});
  }
  return status;
}

absl::Status EventRecorder::CountAgain(const kube::Json& again) {
  const kube::ObjectKey key = kube::KeyOf(again);
  const std::int64_t more = kube::FindInt(again, {"count"}).value_or(1);
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    RM_ASSIGN_OR_RETURN(const kube::Json event, client_.Get(kube::kEvent, key));
    const std::int64_t count = kube::FindInt(event, {"count"}).value_or(1);
    status = client_
                 .Patch(kube::kEvent, key,
                        {{"metadata", {{"resourceVersion", kube::ResourceVersion(event)}}},
                         {"count", count + more},
                         {"lastTimestamp", again["lastTimestamp"]}})
                 .status();
    if (status.code() != absl::StatusCode::kAborted) return status;
  }
  return status;
}

}  // namespace ringmaster::controller

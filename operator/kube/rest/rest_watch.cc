#include "operator/kube/rest/rest_watch.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/status_errors.h"

namespace ringmaster::kube::rest {
namespace {

std::optional<WatchEventType> TypeOf(const std::string& name) {
  for (const WatchEventType type : {WatchEventType::kAdded, WatchEventType::kModified,
                                    WatchEventType::kDeleted, WatchEventType::kBookmark}) {
    if (ToString(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace

RestWatch::RestWatch(OpenStream stream, std::string what, SteadyTime cut, Reading reading)
    : stream_(std::move(stream)), what_(std::move(what)), cut_(cut), reading_(std::move(reading)) {}

absl::StatusOr<WatchEvent> RestWatch::Next(std::chrono::milliseconds timeout) {
  if (!end_.ok()) return end_;
  const SteadyTime now = SteadyTime::clock::now();
  // Compared in the coarser unit: a time-out may be as long as the type allows.
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(cut_ - now);
  const SteadyTime deadline = timeout < left ? now + timeout : cut_;
  auto line = stream_.lines->Next(deadline);
  if (absl::IsDeadlineExceeded(line.status())) {
    if (deadline < cut_) return line.status();
    return End(absl::UnavailableError("the server has kept it open for too long"));
  }
  if (!line.ok()) return End(line.status());
  auto event = Parse(*line);
  if (!event.ok()) return End(event.status());
  return event;
}

absl::StatusOr<WatchEvent> RestWatch::Parse(const std::string& line) const {
  Json parsed = ReadJson(line, reading_);
  const std::string type = parsed.is_discarded() ? "" : FindString(parsed, {"type"});
  const Json* object = type.empty() ? nullptr : Find(parsed, {"object"});
  if (object == nullptr || !object->is_object()) {
    return absl::UnavailableError("the server sent something that is no event");
  }
  if (type == "ERROR") return ErrorOfStatus(*object, what_);
  const auto known = TypeOf(type);
  if (!known) return absl::UnavailableError("the server sent an event of an unknown type");
  return WatchEvent{*known, std::make_shared<const Json>(std::move(parsed["object"]))};
}

// What the stream's contract knows, with the server's own reason.
absl::Status RestWatch::End(absl::Status status) {
  const bool known = absl::IsOutOfRange(status) || absl::IsCancelled(status);
  const std::string message = fmt::format("{}: {}", what_, Message(status));
  end_ = WithReason(absl::Status(known ? status.code() : absl::StatusCode::kUnavailable, message),
                    Reason(status));
  stream_.lines->Stop();
  return end_;
}

void RestWatch::Stop() {
  stream_.lines->Stop();
}

}  // namespace ringmaster::kube::rest

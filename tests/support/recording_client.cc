#include "tests/support/recording_client.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::testing {
namespace {

using kube::Json;

absl::Status Dead() {
  return absl::UnavailableError("the operator has been killed");
}

absl::Status StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

std::string Keys(const Json& patch) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : patch.items()) keys.push_back(key);
  return fmt::format("{}", fmt::join(keys, ", "));
}

// Events read as sentences; the rest by kind and name.
std::string CreateLine(const kube::ResourceType& type, const Json& object) {
  if (type != kube::kEvent) return fmt::format("create {} {}", type.kind, kube::Name(object));
  return fmt::format("event {} {}: {}", kube::FindString(object, {"type"}),
                     kube::FindString(object, {"reason"}), kube::FindString(object, {"message"}));
}

}  // namespace

// Tells nothing to an operator that is dead.
class RecordingClient::Stream : public kube::WatchStream {
 public:
  Stream(std::unique_ptr<kube::WatchStream> inner, const RecordingClient& client)
      : inner_(std::move(inner)), client_(client) {}

  absl::StatusOr<kube::WatchEvent> Next(std::chrono::milliseconds timeout) override {
    if (client_.dead()) return Dead();
    return inner_->Next(timeout);
  }
  void Stop() override { inner_->Stop(); }

 private:
  const std::unique_ptr<kube::WatchStream> inner_;
  const RecordingClient& client_;
};

void RecordingClient::FailCall(int n, absl::Status error, bool answer_lost) {
  fail_at_ = calls_ + n;
  error_ = std::move(error);
  answer_lost_ = answer_lost;
}

void RecordingClient::Die(const std::string& line, const char* when) {
  dead_ = true;
  log_ += fmt::format("{}  -- killed {} it\n", line, when);
  died_();
}

template <typename Call>
auto RecordingClient::Change(const std::string& line, Call call) -> decltype(call()) {
  if (dead_) return Dead();
  ++calls_;
  if (calls_ == die_before_) {
    Die(line, "before");
    return Dead();
  }
  if (calls_ == fail_at_) {
    if (answer_lost_) (void)call();
    log_ += fmt::format("{}  -- {}{}\n", line, Message(error_), answer_lost_ ? ", yet done" : "");
    return error_;
  }
  auto result = call();
  if (calls_ == die_after_) {
    Die(line, "after");
    return Dead();
  }
  const absl::Status status = StatusOf(result);
  log_ += status.ok() ? line + "\n" : fmt::format("{}  -- {}\n", line, Message(status));
  return result;
}

absl::StatusOr<Json> RecordingClient::Get(const kube::ResourceType& type,
                                          const kube::ObjectKey& key) {
  if (dead_) return Dead();
  return inner_.Get(type, key);
}

absl::StatusOr<kube::ObjectList> RecordingClient::List(const kube::ResourceType& type,
                                                       std::string_view ns,
                                                       const kube::ListOptions& options) {
  if (dead_) return Dead();
  return inner_.List(type, ns, options);
}

absl::StatusOr<std::unique_ptr<kube::WatchStream>> RecordingClient::Watch(
    const kube::ResourceType& type, std::string_view ns, const kube::WatchOptions& options) {
  if (dead_) return Dead();
  RM_ASSIGN_OR_RETURN(auto inner, inner_.Watch(type, ns, options));
  return std::make_unique<Stream>(std::move(inner), *this);
}

absl::StatusOr<Json> RecordingClient::Create(const kube::ResourceType& type, const Json& object) {
  return Change(CreateLine(type, object), [&] {
    absl::StatusOr<Json> result = inner_.Create(type, object);
    if (result.ok() && type == kube::kPod) ++created_[kube::Name(object)];
    return result;
  });
}

absl::StatusOr<Json> RecordingClient::Update(const kube::ResourceType& type, const Json& object) {
  return Change(fmt::format("update {} {}", type.kind, kube::Name(object)),
                [&] { return inner_.Update(type, object); });
}

absl::StatusOr<Json> RecordingClient::Patch(const kube::ResourceType& type,
                                            const kube::ObjectKey& key, const Json& patch) {
  return Change(fmt::format("patch {} {}: {}", type.kind, key.name, Keys(patch)),
                [&] { return inner_.Patch(type, key, patch); });
}

absl::StatusOr<Json> RecordingClient::PatchStatus(const kube::ResourceType& type,
                                                  const kube::ObjectKey& key, const Json& status,
                                                  std::string_view resource_version) {
  return Change(fmt::format("status {}: {}", key.name, Keys(status)),
                [&] { return inner_.PatchStatus(type, key, status, resource_version); });
}

absl::StatusOr<Json> RecordingClient::Apply(const kube::ResourceType& type, const Json& object,
                                            const kube::ApplyOptions& options) {
  return Change(fmt::format("apply {} {}", type.kind, kube::Name(object)),
                [&] { return inner_.Apply(type, object, options); });
}

absl::Status RecordingClient::Delete(const kube::ResourceType& type, const kube::ObjectKey& key,
                                     const kube::DeleteOptions& options) {
  return Change(fmt::format("delete {} {}", type.kind, key.name),
                [&] { return inner_.Delete(type, key, options); });
}

}  // namespace ringmaster::testing

#include "operator/controller/informer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/check.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"

namespace ringmaster::controller {
namespace {

// How long the informer's thread waits in one call for an event. Stop does not wait for it: it ends
// the stream.
constexpr std::chrono::minutes kPatience{1};

bool IsNothingYet(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDeadlineExceeded;
}

}  // namespace

Informer::Informer(kube::Client& client, const kube::ResourceType& type, Options options)
    : client_(client), type_(type), options_(std::move(options)) {}

Informer::~Informer() {
  Stop();
}

void Informer::AddIndex(const std::string& name, IndexFunction function) {
  indices_[name] = Index{std::move(function), {}};
}

void Informer::AddHandler(Handler handler) {
  handlers_.push_back(std::move(handler));
}

void Informer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Informer::Stop() {
  {
    const std::lock_guard lock(stream_mutex_);
    stopped_ = true;
    if (stream_ != nullptr) stream_->Stop();
    stop_requested_.notify_all();
  }
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    synced_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Informer::Run() {
  Duration pause = options_.backoff.initial;
  while (true) {
    const absl::Status status = Advance(kPatience).status();
    if (status.code() == absl::StatusCode::kCancelled) return;
    if (status.ok()) {
      pause = options_.backoff.initial;
      if (!Served() && !Pause(options_.ask_again)) return;
      continue;
    }
    log::Warning("cannot list or watch", {{"resource", type_.Qualified()}, {"error", status}});
    if (!Pause(pause)) return;
    pause = std::min(pause * 2, options_.backoff.maximum);
  }
}

bool Informer::Pause(Duration duration) {
  std::unique_lock lock(stream_mutex_);
  stop_requested_.wait_for(lock, duration, [this] { return stopped_; });
  return !stopped_;
}

absl::StatusOr<int> Informer::Pump() {
  int changes = 0;
  while (true) {
    RM_ASSIGN_OR_RETURN(const int taken, Advance(std::chrono::milliseconds(0)));
    // After a list the watch may already have more; after an event, another.
    if (taken == kNothing) return changes;
    changes += taken;
  }
}

absl::StatusOr<int> Informer::Advance(std::chrono::milliseconds timeout) {
  if (resource_version_.empty()) return Relist();
  {
    const std::lock_guard lock(stream_mutex_);
    if (stopped_) return absl::CancelledError("the informer was stopped");
  }
  if (absl::Status status = OpenWatch(); !status.ok()) return EndWatch(status);
  const auto event = stream_->Next(timeout);
  if (!event.ok() && !IsNothingYet(event.status())) return EndWatch(event.status());
  nothing_since_list_ = false;
  if (!event.ok()) return kNothing;
  resource_version_ = kube::ResourceVersion(*event->object);
  if (event->type == kube::WatchEventType::kBookmark) return 0;
  const ObjectKey key = kube::KeyOf(*event->object);
  return event->type == kube::WatchEventType::kDeleted ? Forget(key, event->object)
                                                       : Store(key, event->object);
}

absl::Status Informer::OpenWatch() {
  if (stream_ != nullptr) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(auto stream, client_.Watch(type_, options_.ns,
                                                 {.resource_version = resource_version_,
                                                  .label_selector = options_.label_selector}));
  const std::lock_guard lock(stream_mutex_);
  stream_ = std::move(stream);
  if (stopped_) stream_->Stop();
  return absl::OkStatus();
}

absl::StatusOr<int> Informer::EndWatch(const absl::Status& why) {
  {
    const std::lock_guard lock(stream_mutex_);
    stream_.reset();
  }
  if (IsUnknownKind(why)) {
    resource_version_.clear();
    return 0;
  }
  if (!kube::IsExpired(why)) return why;
  log::Debug("the watch expired, listing again", {{"resource", type_.Qualified()}});
  resource_version_.clear();
  // A list whose own position has expired already is not mended by another at once: a server in
  // that state must not be asked for everything again and again without a pause.
  if (nothing_since_list_) return why;
  return 0;
}

bool Informer::IsUnknownKind(const absl::Status& status) const {
  return options_.ask_again > Duration::zero() && kube::IsNotFound(status);
}

absl::StatusOr<int> Informer::Relist() {
  std::string version;
  const absl::StatusOr<std::vector<ObjectPtr>> listed = ListAll(&version);
  if (IsUnknownKind(listed.status())) {
    const int changes = TakeIn({});
    FinishList(/*served=*/false);
    return changes > 0 ? changes : kNothing;
  }
  RM_RETURN_IF_ERROR(listed.status());
  const int changes = TakeIn(*listed);
  resource_version_ = version;
  nothing_since_list_ = true;
  FinishList(/*served=*/true);
  return changes;
}

int Informer::TakeIn(const std::vector<ObjectPtr>& listed) {
  int changes = 0;
  std::set<ObjectKey> present;
  for (const ObjectPtr& object : listed) {
    present.insert(kube::KeyOf(*object));
    changes += Store(kube::KeyOf(*object), object);
  }
  for (const ObjectPtr& object : List()) {
    const ObjectKey key = kube::KeyOf(*object);
    if (!present.contains(key)) changes += Forget(key, object);
  }
  return changes;
}

void Informer::FinishList(bool served) {
  const std::lock_guard lock(mutex_);
  if (options_.ask_again > Duration::zero() && (!synced_ || served_ != served)) {
    log::Info(served ? "served by the cluster" : "not served by the cluster, will ask again",
              {{"resource", type_.Qualified()}, {"version", std::string(type_.version)}});
  }
  served_ = served;
  synced_ = true;
  synced_changed_.notify_all();
}

absl::StatusOr<std::vector<ObjectPtr>> Informer::ListAll(std::string* resource_version) {
  std::vector<ObjectPtr> all;
  kube::ListOptions page{options_.label_selector, options_.page, ""};
  do {
    RM_ASSIGN_OR_RETURN(kube::ObjectList list, client_.List(type_, options_.ns, page));
    std::move(list.items.begin(), list.items.end(), std::back_inserter(all));
    *resource_version = std::move(list.resource_version);
    page.continue_token = std::move(list.continue_token);
  } while (!page.continue_token.empty());
  return all;
}

int Informer::Store(const ObjectKey& key, const ObjectPtr& object) {
  ObjectPtr before;
  {
    const std::lock_guard lock(mutex_);
    ObjectPtr& slot = objects_[key];
    before = slot;
    slot = object;
    if (before != nullptr && kube::ResourceVersion(*before) == kube::ResourceVersion(*object))
      return 0;
    Reindex(key, before, object);
  }
  for (const Handler& handler : handlers_) handler(before, object);
  return 1;
}

int Informer::Forget(const ObjectKey& key, const ObjectPtr& last) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return 0;
    Reindex(key, it->second, nullptr);
    objects_.erase(it);
  }
  for (const Handler& handler : handlers_) handler(last, nullptr);
  return 1;
}

void Informer::Reindex(const ObjectKey& key, const ObjectPtr& before, const ObjectPtr& after) {
  for (auto& [name, index] : indices_) {
    if (before != nullptr) {
      for (const std::string& value : index.function(*before)) {
        const auto it = index.entries.find(value);
        if (it == index.entries.end()) continue;
        it->second.erase(key);
        if (it->second.empty()) index.entries.erase(it);
      }
    }
    if (after != nullptr) {
      for (const std::string& value : index.function(*after)) index.entries[value].insert(key);
    }
  }
}

bool Informer::HasSynced() const {
  const std::lock_guard lock(mutex_);
  return synced_;
}

bool Informer::Served() const {
  const std::lock_guard lock(mutex_);
  return served_;
}

absl::Status Informer::WaitForSync(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  synced_changed_.wait_for(lock, timeout, [this] { return synced_ || cancelled_; });
  if (synced_) return absl::OkStatus();
  if (cancelled_) return absl::CancelledError("the informer was stopped");
  return absl::DeadlineExceededError("no full list of " + type_.Qualified() + " in time");
}

ObjectPtr Informer::Get(const ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<ObjectPtr> Informer::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<ObjectPtr> all;
  for (const auto& [key, object] : objects_) all.push_back(object);
  return all;
}

std::vector<ObjectPtr> Informer::ByIndex(std::string_view index, const std::string& value) const {
  const std::lock_guard lock(mutex_);
  const auto found = indices_.find(index);
  RM_CHECK(found != indices_.end(), "ByIndex needs an index that AddIndex made");
  const auto keys = found->second.entries.find(value);
  std::vector<ObjectPtr> objects;
  if (keys == found->second.entries.end()) return objects;
  for (const ObjectKey& key : keys->second) objects.push_back(objects_.at(key));
  return objects;
}

std::size_t Informer::Size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

IndexFunction IndexByLabel(std::string label) {
  return [label = std::move(label)](const kube::Json& object) -> std::vector<std::string> {
    auto value = kube::Label(object, label);
    if (!value) return {};
    return {*std::move(value)};
  };
}

IndexFunction IndexByOwnerUid() {
  return [](const kube::Json& object) -> std::vector<std::string> {
    const kube::Json* owner = kube::ControllerOf(object);
    if (owner == nullptr) return {};
    return {kube::FindString(*owner, {"uid"})};
  };
}

}  // namespace ringmaster::controller

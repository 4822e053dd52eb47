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

// How often in a row a kind that was served must be unknown to be so.
constexpr int kSureAfter = 5;

// A watch that was open for so long works: if it has told of something, or even if not. Shorter
// ones are not followed by the next at once, or whatever cuts them would make one of each event.
constexpr std::chrono::milliseconds kShort{100};
constexpr std::chrono::milliseconds kLong{10'000};

bool IsNothingYet(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDeadlineExceeded;
}

}  // namespace

Informer::Informer(kube::Client& client, const kube::ResourceType& type, Options options)
    : client_(client),
      type_(type),
      options_(std::move(options)),
      unknown_(kSureAfter, options_.sure_after, *options_.clock) {}

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
    if (status.ok() && Served()) {
      // A list alone does not tell that the watch after it works.
      if (!nothing_since_list_) pause = options_.backoff.initial;
      continue;
    }
    if (!status.ok())
      log::Warning("cannot list or watch", {{"resource", type_.Qualified()}, {"error", status}});
    // A kind that was seldom asked for because it was not served is not waited for as long once it
    // is.
    const Duration most = status.ok() ? options_.ask_again : options_.backoff.maximum;
    if (!Pause(std::min(pause, most))) return;
    pause = std::min(pause * 2, most);
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
  if (event->type == kube::WatchEventType::kDeleted) return Forget(key, event->object);
  ObjectPtr left;  // held meanwhile, so that Store need not unpack it again
  return Store(key, Keep(event->object, &left));
}

absl::Status Informer::OpenWatch() {
  if (stream_ != nullptr) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(auto stream, client_.Watch(type_, options_.ns,
                                                 {.resource_version = resource_version_,
                                                  .label_selector = options_.label_selector}));
  opened_version_ = resource_version_;
  opened_at_ = options_.clock->SteadyNow();
  const std::lock_guard lock(stream_mutex_);
  stream_ = std::move(stream);
  if (stopped_) stream_->Stop();
  return absl::OkStatus();
}

absl::StatusOr<int> Informer::EndWatch(const absl::Status& why) {
  const SteadyTime::duration open = options_.clock->SteadyNow() - opened_at_;
  const bool told = resource_version_ != opened_version_;
  const bool worked = stream_ != nullptr && open >= (told ? kShort : kLong);
  {
    const std::lock_guard lock(stream_mutex_);
    stream_.reset();
  }
  if (IsUnknownKind(why)) {
    resource_version_.clear();
    // One of several API servers may serve it and another not: again a list, not without a pause.
    if (nothing_since_list_) return why;
    return 0;
  }
  // Every watch ends after some minutes, and under load a server ends those that it cannot serve in
  // time: then the next one goes on from here, and the sooner the less there is to catch up with.
  if (worked && absl::IsUnavailable(why)) {
    log::Debug("the watch ended, opening the next",
               {{"resource", type_.Qualified()}, {"error", why}});
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
  const SteadyTime began = options_.clock->SteadyNow();
  absl::StatusOr<std::map<ObjectKey, KeptObject>> listed = ListAll(&version);
  if (IsUnknownKind(listed.status())) {
    if (Served() && !unknown_.Again()) return listed.status();
    const int changes = TakeIn({});
    FinishList(/*served=*/false, began);
    return changes > 0 ? changes : kNothing;
  }
  RM_RETURN_IF_ERROR(listed.status());
  unknown_.Break();
  const int changes = TakeIn(*std::move(listed));
  resource_version_ = version;
  nothing_since_list_ = true;
  FinishList(/*served=*/true, began);
  return changes;
}

int Informer::TakeIn(std::map<ObjectKey, KeptObject> listed) {
  int changes = 0;
  const std::vector<ObjectKey> gone = KeysWithout(listed);
  // One leaves the list as it enters the copy, so that they are not there twice at once.
  while (!listed.empty()) {
    auto first = listed.extract(listed.begin());
    changes += Store(first.key(), std::move(first.mapped()));
  }
  for (const ObjectKey& key : gone) changes += Forget(key, Get(key));
  return changes;
}

void Informer::FinishList(bool served, SteadyTime began) {
  const std::lock_guard lock(mutex_);
  if (options_.ask_again > Duration::zero() && (!synced_ || served_ != served)) {
    log::Info(served ? "served by the cluster" : "not served by the cluster, will ask again",
              {{"resource", type_.Qualified()}, {"version", std::string(type_.version)}});
  }
  served_ = served;
  list_began_ = began;
  synced_ = true;
  synced_changed_.notify_all();
}

absl::StatusOr<std::map<ObjectKey, KeptObject>> Informer::ListAll(std::string* resource_version) {
  std::map<ObjectKey, KeptObject> all;
  kube::ListOptions page{options_.label_selector, options_.page, ""};
  do {
    RM_ASSIGN_OR_RETURN(kube::ObjectList list, client_.List(type_, options_.ns, page));
    for (const ObjectPtr& object : list.items) all.emplace(kube::KeyOf(*object), Keep(object));
    *resource_version = std::move(list.resource_version);
    page.continue_token = std::move(list.continue_token);
  } while (!page.continue_token.empty());
  return all;
}

std::vector<ObjectKey> Informer::KeysWithout(const std::map<ObjectKey, KeptObject>& these) const {
  const std::lock_guard lock(mutex_);
  std::vector<ObjectKey> others;
  for (const auto& [key, kept] : objects_) {
    if (!these.contains(key)) others.push_back(key);
  }
  return others;
}

std::vector<ObjectPtr> Informer::ReadAll(const std::vector<KeptObject>& kept) {
  std::vector<ObjectPtr> objects;
  objects.reserve(kept.size());
  for (const KeptObject& one : kept) objects.push_back(one.Read());
  return objects;
}

int Informer::Store(const ObjectKey& key, KeptObject kept) {
  const ObjectPtr before = Get(key);
  const ObjectPtr after = kept.Read();
  {
    const std::lock_guard lock(mutex_);
    objects_[key] = std::move(kept);
    if (before != nullptr && kube::ResourceVersion(*before) == kube::ResourceVersion(*after))
      return 0;
    Reindex(key, before, after);
  }
  for (const Handler& handler : handlers_) handler(before, after);
  return 1;
}

int Informer::Forget(const ObjectKey& key, const ObjectPtr& last) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return 0;
    Reindex(key, it->second.Read(), nullptr);
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

SteadyTime Informer::LastListBegan() const {
  const std::lock_guard lock(mutex_);
  return list_began_;
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
  KeptObject kept;
  {
    const std::lock_guard lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return nullptr;
    kept = it->second;
  }
  return kept.Read();
}

std::vector<ObjectPtr> Informer::List() const {
  std::vector<KeptObject> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, kept] : objects_) all.push_back(kept);
  }
  return ReadAll(all);
}

std::vector<ObjectPtr> Informer::ByIndex(std::string_view index, const std::string& value) const {
  std::vector<KeptObject> found;
  {
    const std::lock_guard lock(mutex_);
    const auto it = indices_.find(index);
    RM_CHECK(it != indices_.end(), "ByIndex needs an index that AddIndex made");
    const auto keys = it->second.entries.find(value);
    if (keys == it->second.entries.end()) return {};
    for (const ObjectKey& key : keys->second) found.push_back(objects_.at(key));
  }
  return ReadAll(found);
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

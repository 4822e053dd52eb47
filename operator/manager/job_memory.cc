#include "operator/manager/job_memory.h"

#include <algorithm>
#include <utility>

namespace ringmaster::manager {

JobMemory::JobMemory(const Clock& clock, controller::Backoff stands)
    : clock_(clock), stands_(stands) {}

bool JobMemory::Meet(const kube::ObjectKey& key, const std::string& uid) {
  const std::lock_guard lock(mutex_);
  const auto [job, first] = jobs_.try_emplace(key);
  const bool replaced = !first && job->second.uid != uid;
  if (first || replaced) job->second = Job{.uid = uid};
  return replaced;
}

void JobMemory::Forget(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(key);
}

bool JobMemory::Tried(const kube::ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(key);
  return job != jobs_.end() && job->second.tried;
}

Duration JobMemory::StatusHeld(const kube::ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(key);
  return job == jobs_.end() || job->second.held == nullptr ? Duration() : LeftOf(*job->second.held);
}

Duration JobMemory::CreationHeld(const kube::ObjectKey& key, std::int64_t generation) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end() || job->second.told == nullptr) return {};
  const Told& told = *job->second.told;
  return told.generation == generation ? LeftOf(told.creation) : Duration();
}

std::optional<reconcile::Refusal> JobMemory::Tell(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end() || job->second.told == nullptr) return std::nullopt;
  Told& told = *job->second.told;
  if (!told.until) told.until = clock_.SteadyNow() + told.stands;
  return told.refusal;
}

void JobMemory::NoteRefused(const kube::ObjectKey& key, std::int64_t generation,
                            const reconcile::Refusal& refusal) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_.at(key);
  job.tried = true;
  if (job.told == nullptr)
    job.told = std::make_unique<Told>(Told{.refusal = refusal, .stands = stands_.initial});
  Told& told = *job.told;
  if (std::exchange(told.generation, generation) != generation) told.creation = {};
  // Where it is held nothing was to be created: what was refused is something else, a deletion.
  if (LeftOf(told.creation) == Duration()) HoldLonger(told.creation);
  if (told.refusal == refusal || (told.until && clock_.SteadyNow() < *told.until)) return;
  told.refusal = refusal;
  if (told.until) told.stands = std::min(told.stands * 2, stands_.maximum);
  told.until.reset();
}

void JobMemory::NoteTried(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  jobs_.at(key).tried = true;
}

bool JobMemory::NoteTaken(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_.at(key);
  job.tried = true;
  const bool told = job.told != nullptr;
  job.told.reset();
  return told;
}

void JobMemory::NoteStatusRefused(const kube::ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_.at(key);
  if (job.held == nullptr) job.held = std::make_unique<Held>();
  HoldLonger(*job.held);
}

void JobMemory::NoteStatusTaken(const kube::ObjectKey& key, bool stored) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_.at(key);
  job.held.reset();
  if (stored) job.first_status.reset();
}

void JobMemory::KeepFirstStatus(const kube::ObjectKey& key,
                                training::v1alpha1::TrainingJobStatus status) {
  const std::lock_guard lock(mutex_);
  jobs_.at(key).first_status =
      std::make_unique<training::v1alpha1::TrainingJobStatus>(std::move(status));
}

std::optional<training::v1alpha1::TrainingJobStatus> JobMemory::FirstStatus(
    const kube::ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end() || job->second.first_status == nullptr) return std::nullopt;
  return *job->second.first_status;
}

void JobMemory::HoldLonger(Held& held) const {
  held.pause = std::clamp(held.pause * 2, stands_.initial, stands_.maximum);
  held.until = clock_.SteadyNow() + held.pause;
}

Duration JobMemory::LeftOf(const Held& held) const {
  return std::chrono::duration_cast<Duration>(
      std::max(held.until - clock_.SteadyNow(), SteadyTime::duration(0)));
}

}  // namespace ringmaster::manager

#include "runtime/train/testing/cluster.h"

#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "runtime/train/session.h"

namespace ringmaster::train::testing {
namespace {

constexpr std::chrono::seconds kDeadline{120};

// An address of this process's own, so that tests may run side by side.
std::string AddressOf(int worker) {
  const auto pid = static_cast<unsigned>(::getpid());
  return fmt::format("127.{}.{}.{}:0", 64 + pid / 250 % 128, 1 + pid % 250, 1 + worker);
}

}  // namespace

class Cluster::Worker : public EventSink {
 public:
  Worker(Cluster& cluster, int index, int incarnation, SessionOptions options)
      : pod_uid(fmt::format("pod-{}-{}", index, incarnation)),
        cluster_(cluster),
        index_(index),
        session_(cluster.config_, options, inbox, *this, registry),
        thread_([this] { Run(); }) {}
  ~Worker() override {
    inbox.Close("the test is over");
    thread_.join();
  }

  void Send(int64_t round, const Event& event) override { cluster_.Heard(index_, {round, event}); }

  const std::string pod_uid;
  Inbox inbox;
  metrics::Registry registry;

 private:
  void Run() {
    const Ending ending = session_.Run();
    std::lock_guard lock(cluster_.mutex_);
    cluster_.endings_[static_cast<size_t>(index_)] = ending;
    cluster_.changed_.notify_all();
  }

  Cluster& cluster_;
  const int index_;
  Session session_;
  std::thread thread_;
};

Cluster::Cluster(training::v1alpha1::WorkerConfig config, SessionOptions options)
    : config_(std::move(config)), options_(std::move(options)) {}

Cluster::~Cluster() {
  for (const auto& worker : workers_) {
    if (worker != nullptr) worker->inbox.Close("the test is over");
  }
  Resume();
  std::vector<std::unique_ptr<Worker>> gone;
  {
    std::lock_guard lock(mutex_);
    gone.swap(workers_);
  }
}

void Cluster::Start(int count) {
  std::lock_guard lock(mutex_);  // what a new worker says at once waits until all are there
  events_.resize(static_cast<size_t>(count));
  endings_.resize(static_cast<size_t>(count));
  workers_.resize(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) {
    std::unique_ptr<Worker>& worker = workers_[static_cast<size_t>(index)];
    if (worker != nullptr) continue;
    SessionOptions options = options_;
    options.listen = AddressOf(index);
    if (adjust) adjust(index, options);
    worker = std::make_unique<Worker>(*this, index, incarnations_++, options);
  }
}

void Cluster::Kill(int worker) {
  workers_[static_cast<size_t>(worker)]->inbox.Close("killed");
  Resume();
  std::unique_ptr<Worker> gone;
  {
    std::lock_guard lock(mutex_);
    gone = std::move(workers_[static_cast<size_t>(worker)]);
  }
  gone.reset();  // it may say something until its thread has ended
  std::lock_guard lock(mutex_);
  events_[static_cast<size_t>(worker)].clear();
  endings_[static_cast<size_t>(worker)].reset();
}

void Cluster::Shrink(int count) {
  while (std::cmp_greater(workers_.size(), count)) {
    Kill(static_cast<int>(workers_.size()) - 1);
    std::lock_guard lock(mutex_);
    workers_.pop_back();
    events_.pop_back();
    endings_.pop_back();
  }
}

void Cluster::Announce() {
  std::vector<collectives::Member> members;
  for (int index = 0; std::cmp_less(index, workers_.size()); ++index) {
    WaitUntil(fmt::format("worker {} is ready", index),
              [&] { return !EventsOf<Ready>(index).empty(); });
    members.push_back({.address = EventsOf<Ready>(index).front().address,
                       .pod_uid = workers_[static_cast<size_t>(index)]->pod_uid});
  }
  Round round;
  {
    std::lock_guard lock(mutex_);
    round = {.number = ++round_,
             .members = members,
             .key = "a key of thirty-two bytes, or so",
             .shards = config_.trainer.batch.shards.value_or(0),
             .checkpoints = checkpoints_};
  }
  for (const auto& worker : workers_) {
    worker->inbox.Push(round);
    ++round.rank;
  }
}

void Cluster::Tell(int worker, const Command& command) {
  workers_[static_cast<size_t>(worker)]->inbox.Push(command);
}

void Cluster::TellAll(const Command& command) {
  for (const auto& worker : workers_) worker->inbox.Push(command);
}

void Cluster::Heard(int worker, const Said& said) {
  std::unique_lock lock(mutex_);
  events_[static_cast<size_t>(worker)].push_back(said);
  changed_.notify_all();
  if (const auto* durable = std::get_if<ShardDurable>(&said.event)) {
    durable_[{said.round, durable->step}][worker] = durable->digest;
    for (const auto& [to, news] : CommitWhole(said.round, durable->step)) {
      const auto& worker_to = workers_[static_cast<size_t>(to)];
      if (worker_to != nullptr) worker_to->inbox.Push(news);
    }
  }
  StandStill(lock, worker, said.event);
}

void Cluster::StandStill(std::unique_lock<std::mutex>& lock, int worker, const Event& event) {
  const auto* progress = std::get_if<Progress>(&event);
  if (progress == nullptr || worker != pause_worker_ || progress->step < pause_step_) return;
  paused_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !paused_; });
}

void Cluster::PauseAt(int worker, int64_t step) {
  std::lock_guard lock(mutex_);
  pause_worker_ = worker;
  pause_step_ = step;
}

void Cluster::WaitUntilPaused() {
  WaitUntil(fmt::format("worker {} stands still after step {}", pause_worker_, pause_step_), [&] {
    std::lock_guard lock(mutex_);
    return paused_;
  });
}

void Cluster::Resume() {
  std::lock_guard lock(mutex_);
  pause_worker_ = -1;
  paused_ = false;
  changed_.notify_all();
}

void Cluster::RunTo(int worker, int64_t step) {
  PauseAt(worker, step);
  Announce();
  WaitUntilPaused();
}

// What the operator's policy does: a step that all members of the present round have reported
// exists, and only `keep` of them do.
std::vector<std::pair<int, CheckpointCommitted>> Cluster::CommitWhole(int64_t round, int64_t step) {
  const std::map<int, std::string>& parts = durable_[{round, step}];
  const int world = static_cast<int>(workers_.size());
  const bool whole = commits && std::cmp_equal(parts.size(), world);
  if (round != round_ || !whole) return {};
  std::vector<std::string> digests;
  for (const auto& [rank, digest] : parts) digests.push_back(digest);
  CheckpointCommitted news{.checkpoint = {.id = {.step = step, .round = round, .world_size = world},
                                          .digest = checkpoint::CombinedDigest(digests)}};
  checkpoints_.insert(checkpoints_.begin(), news.checkpoint);
  while (std::cmp_greater(checkpoints_.size(), config_.checkpoint.keep)) {
    news.dropped.push_back(checkpoints_.back());
    checkpoints_.pop_back();
  }
  std::vector<std::pair<int, CheckpointCommitted>> told;
  for (int index = 0; index < world; ++index) told.emplace_back(index, news);
  return told;
}

std::vector<Cluster::Said> Cluster::Events(int worker) const {
  std::lock_guard lock(mutex_);
  return events_[static_cast<size_t>(worker)];
}

std::vector<checkpoint::CheckpointRef> Cluster::checkpoints() const {
  std::lock_guard lock(mutex_);
  return checkpoints_;
}

void Cluster::WaitForCheckpoint(int64_t step) {
  WaitUntil(fmt::format("the checkpoint of step {} exists", step), [&] {
    const std::vector<checkpoint::CheckpointRef> list = checkpoints();
    return !list.empty() && list.front().id.step >= step;
  });
}

std::string Cluster::MetricsOf(int worker) const {
  return workers_[static_cast<size_t>(worker)]->registry.Text();
}

std::optional<Ending> Cluster::EndingOf(int worker) const {
  std::lock_guard lock(mutex_);
  return endings_[static_cast<size_t>(worker)];
}

void Cluster::WaitUntil(const std::string& what, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!done()) {
    std::unique_lock lock(mutex_);
    // The condition may have come true before the lock: a short wait, and another look.
    changed_.wait_for(lock, std::chrono::milliseconds(50));
    if (std::chrono::steady_clock::now() < deadline) continue;
    lock.unlock();
    throw std::runtime_error(fmt::format("not within the deadline: {}\n{}", what, Describe()));
  }
}

void Cluster::WaitForStep(int worker, int64_t step) {
  WaitUntil(fmt::format("worker {} is at step {}", worker, step), [&] {
    const std::vector<Progress> progress = EventsOf<Progress>(worker);
    return !progress.empty() && progress.back().step >= step;
  });
}

std::vector<Ending> Cluster::WaitForEndings() {
  std::vector<Ending> endings;
  WaitUntil("all workers have ended", [&] {
    endings.clear();
    std::lock_guard lock(mutex_);
    for (const auto& ending : endings_) {
      if (!ending) return false;
      endings.push_back(*ending);
    }
    return true;
  });
  return endings;
}

Finished Cluster::WaitUntilFinished() {
  const std::vector<Ending> endings = WaitForEndings();
  std::optional<Finished> first;
  for (int index = 0; std::cmp_less(index, endings.size()); ++index) {
    const std::vector<Finished> finished = EventsOf<Finished>(index);
    if (finished.size() != 1) throw std::runtime_error("a worker did not finish\n" + Describe());
    if (!first) first = finished.front();
  }
  return first.value();
}

Finished TrainUndisturbed(const training::v1alpha1::WorkerConfig& config,
                          const SessionOptions& options, int workers) {
  Cluster cluster(config, options);
  cluster.Start(workers);
  cluster.Announce();
  return cluster.WaitUntilFinished();
}

Finished TrainWithALoss(training::v1alpha1::WorkerConfig config, const SessionOptions& options,
                        int workers) {
  config.checkpoint.every_steps = 4;
  Cluster cluster(std::move(config), options);
  cluster.Start(workers);
  cluster.RunTo(1, 9);
  cluster.WaitForCheckpoint(8);
  cluster.Kill(1);
  cluster.Start(workers);
  cluster.Announce();
  return cluster.WaitUntilFinished();
}

std::string Cluster::Describe() const {
  std::string text;
  std::lock_guard lock(mutex_);
  for (size_t index = 0; index < events_.size(); ++index) {
    text += fmt::format("worker {}: {} events", index, events_[index].size());
    for (const Said& said : events_[index]) {
      if (const auto* progress = std::get_if<Progress>(&said.event)) {
        text += fmt::format(", step {}", progress->step);
      } else if (const auto* lost = std::get_if<PeerLost>(&said.event)) {
        text += fmt::format(", lost a peer ({})", lost->message);
      }
    }
    if (endings_[index]) {
      text +=
          fmt::format("; ended with {}: {}", endings_[index]->exit_code, endings_[index]->message);
    }
    text += "\n";
  }
  return text;
}

}  // namespace ringmaster::train::testing

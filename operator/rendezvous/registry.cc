#include "operator/rendezvous/registry.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/host_port.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/rendezvous/messages.h"
#include "operator/rendezvous/round_key.h"

namespace ringmaster::rendezvous {
namespace {

constexpr char kReplacedByANewerStream[] = "replaced by a newer stream of the same pod";
constexpr size_t kMaxTokenBytes = 64 << 10;

std::int64_t Milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// What is wrong with a Hello whatever the cluster says; empty when nothing is.
std::string Malformed(const v1::Hello& hello) {
  for (const auto& [name, value] : {std::pair{"namespace", &hello.namespace_()},
                                    {"job", &hello.job()},
                                    {"pod", &hello.pod()},
                                    {"pod_uid", &hello.pod_uid()}}) {
    if (value->empty()) return fmt::format("the Hello has no {}", name);
  }
  if (hello.round() < 0) return "the Hello has a negative round";
  // One that comes only to say its last is dialled by nobody.
  if (hello.address().empty() && (hello.native() || hello.leaving())) return "";
  return IsNumericHostPort(hello.address()) ? "" : "the Hello's address is not a numeric host:port";
}

bool IsFinal(const reconcile::WorkerCommand& command) {
  return std::holds_alternative<reconcile::DrainCommand>(command) ||
         std::holds_alternative<reconcile::StopCommand>(command);
}

}  // namespace

Registry::Registry(Options options, const Clock& clock, PodVerifier& verifier,
                   std::function<void(const kube::ObjectKey&)> changed)
    : options_(std::move(options)),
      clock_(clock),
      verifier_(verifier),
      changed_(std::move(changed)),
      since_(clock.Now()),
      last_tick_(clock.SteadyNow()),
      last_heartbeat_(last_tick_),
      last_prune_(last_tick_) {}

Registry::~Registry() = default;

void Registry::Notify(const Keys& jobs) const {
  for (const kube::ObjectKey& job : jobs) changed_(job);
}

Registry::Stream* Registry::Find(StreamId id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

Registry::Worker* Registry::WorkerOf(const Stream& stream) {
  return stream.identity ? FindWorker(stream.identity->job, stream.identity->pod_uid) : nullptr;
}

Registry::Worker* Registry::FindWorker(const kube::ObjectKey& key, const std::string& pod_uid) {
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return nullptr;
  const auto worker = job->second.workers.find(pod_uid);
  return worker == job->second.workers.end() ? nullptr : &worker->second;
}

// Its stream, where it is there to be told something.
Registry::Stream* Registry::ListeningStream(const Worker& worker) {
  Stream* stream = worker.stream == 0 ? nullptr : Find(worker.stream);
  return stream == nullptr || stream->said_all ? nullptr : stream;
}

Registry::StreamId Registry::Opened(std::shared_ptr<Downstream> downstream,
                                    const std::string& source) {
  std::lock_guard lock(mutex_);
  const StreamId id = next_stream_++;
  streams_[id] =
      Stream{.downstream = std::move(downstream), .source = source, .heard = clock_.SteadyNow()};
  return id;
}

void Registry::Received(StreamId id, const v1::FromWorker& message) {
  if (message.has_hello()) return Greet(id, message.hello());
  Keys changed;
  {
    std::lock_guard lock(mutex_);
    TakeMessage(id, message, &changed);
  }
  Notify(changed);
}

void Registry::Queued(StreamId id) {
  std::lock_guard lock(mutex_);
  Stream* stream = Find(id);
  if (stream != nullptr && !stream->greeted) stream->waits = clock_.SteadyNow();
}

// Whether the stream may say Hello now.
bool Registry::BeginHello(StreamId id, std::string* source, std::string* leader) {
  std::lock_guard lock(mutex_);
  Stream* stream = Find(id);
  if (stream == nullptr) return false;
  if (stream->greeted) {
    stream->downstream->End(absl::InvalidArgumentError("a second Hello on one stream"));
    return false;
  }
  stream->greeted = true;
  stream->heard = clock_.SteadyNow();
  if (!stream->waits) stream->waits = stream->heard;
  *source = stream->source;
  if (leader_elsewhere_) {
    *leader = *leader_elsewhere_;
    Refuse(id, "this operator does not lead", false, *leader);
    return false;
  }
  return true;
}

void Registry::Greet(StreamId id, const v1::Hello& hello) {
  std::string source, leader;
  if (!BeginHello(id, &source, &leader)) return;
  const WorkerIdentity identity{{hello.namespace_(), hello.job()}, hello.pod(), hello.pod_uid()};
  const absl::Status verdict = Check(identity, hello);
  {
    std::lock_guard lock(mutex_);
    if (absl::IsUnavailable(verdict)) {
      deaf_ = clock_.Now();
      line_since_.reset();
    }
    if (Find(id) == nullptr || leader_elsewhere_) return;
    if (!verdict.ok()) {
      // A token that is not good today may be renewed tomorrow.
      const bool unknown = absl::IsUnauthenticated(verdict);
      const bool permanent =
          !unknown && !absl::IsNotFound(verdict) && !absl::IsUnavailable(verdict);
      if (permanent || unknown) refusals_.Refused("worker", source, Message(verdict));
      if (absl::IsUnavailable(verdict))
        refusals_.Refused("unchecked worker", source, Message(verdict));
      return Refuse(id, Message(verdict), permanent, "");
    }
    Accept(id, identity, hello);
  }
  Notify({identity.job});
}

// The pod first: that is answered from memory, so nobody can make us ask the API server for
// nothing.
absl::Status Registry::Check(const WorkerIdentity& worker, const v1::Hello& hello) {
  const std::string malformed = Malformed(hello);
  if (!malformed.empty()) return absl::InvalidArgumentError(malformed);
  RM_RETURN_IF_ERROR(verifier_.Verify(worker, hello.leaving()));
  return options_.reviewer == nullptr ? absl::OkStatus() : CheckToken(worker, hello.token());
}

absl::Status Registry::CheckToken(const WorkerIdentity& worker, const std::string& token) {
  if (token.empty()) return absl::UnauthenticatedError("the Hello has no token");
  // Nobody is to make the API server refuse the question itself, which would say nothing of others.
  if (token.size() > kMaxTokenBytes)
    return absl::UnauthenticatedError("what the Hello has as a token is longer than any");
  const auto pod = options_.reviewer->ReviewToken(token, contract::kTokenAudience);
  if (!pod.ok()) {
    if (absl::IsUnauthenticated(pod.status())) return pod.status();
    return absl::UnavailableError(
        fmt::format("the token cannot be checked: {}", std::string(pod.status().message())));
  }
  const kube::PodIdentity claimed{{worker.job.ns, worker.pod}, worker.pod_uid};
  if (*pod == claimed) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format("the token is of pod {} ({}), not of {} ({})",
                                                 pod->pod.ToString(), pod->uid,
                                                 claimed.pod.ToString(), claimed.uid));
}

void Registry::Refuse(StreamId id, const std::string& reason, bool permanent,
                      const std::string& leader) {
  Stream* stream = Find(id);
  stream->waits.reset();
  v1::ToWorker message;
  message.mutable_refused()->set_reason(reason);
  message.mutable_refused()->set_permanent(permanent);
  message.mutable_refused()->set_leader(leader);
  stream->downstream->Send(message);
  stream->downstream->End(absl::FailedPreconditionError(reason));
}

void Registry::Accept(StreamId id, const WorkerIdentity& identity, const v1::Hello& hello) {
  Job& job = jobs_[identity.job];
  Worker& worker = job.workers[identity.pod_uid];
  // Tokens are not always checked in the order in which the Hellos came.
  Stream& stream = *Find(id);
  stream.waits.reset();
  if (worker.stream > id)
    return stream.downstream->End(absl::AbortedError(kReplacedByANewerStream));
  if (Stream* older = worker.stream == 0 ? nullptr : Find(worker.stream)) {
    older->identity.reset();
    older->downstream->End(absl::AbortedError(kReplacedByANewerStream));
  }
  stream.identity = identity;
  worker.stream = id;
  worker.view.pod = identity.pod;
  worker.view.pod_uid = identity.pod_uid;
  worker.view.native = hello.native();
  worker.view.connected = true;
  worker.view.departing = hello.leaving();
  worker.view.leaving = false;
  worker.view.disconnected_at.reset();
  worker.view.last_heard = clock_.Now();
  // A foreign program has no trainer that could be ready: its launcher is, from the start.
  if (!hello.native()) worker.view.ready = reconcile::ReadyReport{.address = hello.address()};
  MoveToRound(hello.round(), worker.view);

  v1::ToWorker message;
  message.mutable_accepted()->set_heartbeat_ms(Milliseconds(options_.timing.heartbeat));
  message.mutable_accepted()->set_timeout_ms(Milliseconds(options_.timing.timeout));
  stream.downstream->Send(message);
  log::Info("worker joined", {{"job", identity.job.ToString()},
                              {"pod", identity.pod},
                              {"round", hello.round()},
                              {"source", stream.source}});
  TellRound(job, worker);
}

void Registry::TakeMessage(StreamId id, const v1::FromWorker& message, Keys* changed) {
  Stream* stream = Find(id);
  if (stream == nullptr) return;
  if (!stream->greeted) {
    refusals_.Refused("no Hello", stream->source, "the first message was not a Hello");
    stream->downstream->End(absl::InvalidArgumentError("the first message must be a Hello"));
    return;
  }
  Worker* worker = WorkerOf(*stream);
  if (worker == nullptr) return;  // refused, replaced or forgotten: its words do not count
  stream->heard = clock_.SteadyNow();
  worker->view.last_heard = clock_.Now();
  if (message.has_heartbeat()) return TakeHeartbeat(*stream, message.heartbeat().round(), changed);
  if (message.event().has_ready() && !IsNumericHostPort(message.event().ready().address())) {
    constexpr char kWhy[] = "the address in Ready is not a numeric host:port";
    refusals_.Refused("worker", stream->source, kWhy);
    return stream->downstream->End(absl::InvalidArgumentError(kWhy));
  }
  Job& job = jobs_[stream->identity->job];
  const std::int64_t announced = job.round ? job.round->round : 0;
  switch (Apply(message.event(), announced, clock_.Now(), worker->view)) {
    case Effect::kNone:
      break;
    case Effect::kProgress:
      NoteProgress(stream->identity->job, job, changed);
      break;
    case Effect::kChanged:
      changed->insert(stream->identity->job);
  }
}

void Registry::TakeHeartbeat(Stream& stream, std::int64_t round, Keys* changed) {
  Worker* worker = WorkerOf(stream);
  if (MoveToRound(round, worker->view) == Effect::kChanged) changed->insert(stream.identity->job);
}

void Registry::NoteProgress(const kube::ObjectKey& key, Job& job, Keys* changed) {
  const SteadyTime now = clock_.SteadyNow();
  job.progress_pending = now - job.progress_told < options_.timing.progress_interval;
  if (job.progress_pending) return;
  job.progress_told = now;
  changed->insert(key);
}

void Registry::HalfClosed(StreamId id) {
  Keys changed;
  {
    std::lock_guard lock(mutex_);
    Stream* stream = Find(id);
    if (stream == nullptr) return;
    Worker* worker = WorkerOf(*stream);
    if (worker != nullptr && worker->view.exited) {
      stream->said_all = true;
      stream->heard = clock_.SteadyNow();
      worker->view.connected = false;
      worker->view.disconnected_at = clock_.Now();
      worker->view.leaving = true;
      changed.insert(stream->identity->job);
      log::Info("worker has ended and waits to be let go",
                {{"job", stream->identity->job.ToString()}, {"pod", stream->identity->pod}});
    } else {
      stream->downstream->End(absl::OkStatus());
      Detach(id, "closed by the worker", &changed);
    }
  }
  Notify(changed);
}

void Registry::Closed(StreamId id) {
  Keys changed;
  {
    std::lock_guard lock(mutex_);
    Detach(id, "stream ended", &changed);
  }
  Notify(changed);
}

void Registry::Detach(StreamId id, const std::string& why, Keys* changed) {
  Stream* stream = Find(id);
  if (stream == nullptr) return;
  Worker* worker = WorkerOf(*stream);
  if (worker != nullptr && worker->stream == id) {
    worker->stream = 0;
    // One that was leaving said its last when it closed its side: only now is it away.
    if (worker->view.leaving || !worker->view.disconnected_at)
      worker->view.disconnected_at = clock_.Now();
    worker->view.connected = false;
    worker->view.leaving = false;
    changed->insert(stream->identity->job);
    log::Info(
        "worker disconnected",
        {{"job", stream->identity->job.ToString()}, {"pod", stream->identity->pod}, {"why", why}});
  }
  streams_.erase(id);
}

void Registry::StandBy(const std::string& leader) {
  std::lock_guard lock(mutex_);
  leader_elsewhere_ = leader;
  jobs_.clear();
  for (auto& [id, stream] : streams_) {
    stream.identity.reset();
    stream.waits.reset();
    stream.downstream->End(absl::UnavailableError("this operator does not lead any more"));
  }
}

void Registry::Activate() {
  std::lock_guard lock(mutex_);
  leader_elsewhere_.reset();
  since_ = clock_.Now();
}

reconcile::WorkersView Registry::SnapshotFor(const kube::ObjectKey& key) {
  std::lock_guard lock(mutex_);
  // Who stands by knows nobody, and nobody is away for long from where he may not be.
  reconcile::WorkersView snapshot{.since =
                                      leader_elsewhere_ ? clock_.Now() : std::max(since_, deaf_)};
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return snapshot;
  for (const auto& [uid, worker] : job->second.workers) snapshot.workers.push_back(worker.view);
  return snapshot;
}

void Registry::Announce(const kube::ObjectKey& key, const reconcile::Announcement& round) {
  std::lock_guard lock(mutex_);
  Job& job = jobs_[key];
  if (job.round && round.round < job.round->round) return;
  if (!job.round || round.round > job.round->round) {
    log::Info("round announced",
              {{"job", key.ToString()}, {"round", round.round}, {"members", round.members.size()}});
  }
  // Also for the same number: the checkpoints to resume from grow while the round stands.
  if (job.round != round) {
    job.round = round;
    job.key = RoundKey(options_.secret, key, round);
    job.ranks.clear();
    for (const reconcile::RoundMember& member : round.members)
      job.ranks[member.pod_uid] = member.rank;
  }
  for (auto& [uid, worker] : job.workers) TellRound(job, worker);
}

void Registry::TellRound(Job& job, Worker& worker) {
  if (!job.round) return;
  Stream* stream = ListeningStream(worker);
  if (stream == nullptr || stream->told_round >= job.round->round) return;
  const auto rank = job.ranks.find(worker.view.pod_uid);
  if (rank == job.ranks.end()) return;
  stream->downstream->Send(RoundMessage(*job.round, rank->second, job.key));
  stream->told_round = job.round->round;
}

void Registry::Send(const kube::ObjectKey& key, const std::string& pod_uid,
                    const reconcile::WorkerCommand& command) {
  std::lock_guard lock(mutex_);
  Worker* worker = FindWorker(key, pod_uid);
  if (worker == nullptr) return;
  if (const auto* committed = std::get_if<reconcile::CheckpointCommittedCommand>(&command))
    ForgetShardsUpTo(committed->checkpoint.step, worker->view);
  Stream* stream = ListeningStream(*worker);
  if (stream == nullptr) return;
  if (const auto* now = std::get_if<reconcile::CheckpointNowCommand>(&command)) {
    if (stream->checkpoint_wanted == now->wanted_since) return;
    stream->checkpoint_wanted = now->wanted_since;
  }
  const v1::ToWorker message = CommandMessage(command);
  if (IsFinal(command)) {
    std::string bytes = message.SerializeAsString();
    if (bytes == stream->final_command) return;
    stream->final_command = std::move(bytes);
  }
  stream->downstream->Send(message);
}

void Registry::LetGo(const kube::ObjectKey& key, const std::string& pod_uid) {
  std::lock_guard lock(mutex_);
  Worker* worker = FindWorker(key, pod_uid);
  Stream* stream = worker == nullptr || worker->stream == 0 ? nullptr : Find(worker->stream);
  if (stream == nullptr || !stream->said_all) return;
  stream->downstream->End(absl::OkStatus());
  Keys nothing_new;  // it counts as gone since it closed its side
  Detach(worker->stream, "let go", &nothing_new);
}

void Registry::Forget(const kube::ObjectKey& key) {
  std::lock_guard lock(mutex_);
  jobs_.erase(key);
  for (auto& [id, stream] : streams_) {
    if (!stream.identity || stream.identity->job != key) continue;
    stream.identity.reset();
    stream.downstream->End(stream.said_all ? absl::OkStatus()
                                           : absl::NotFoundError("the job is over"));
  }
}

}  // namespace ringmaster::rendezvous

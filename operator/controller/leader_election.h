// Leader election by a Lease (coordination.k8s.io/v1): of several operators one works, the others
// stand by.
//
// The rules are client-go's, so that clusters know them:
// - The leader renews every `retry_period`. When it has not managed to for `renew_deadline` it has
//   lost, also while a call still hangs: Leads() goes false by the clock alone.
// - A candidate takes the lease when it is free, or when its record has not changed for the
// record's
//   own duration *as this candidate's steady clock saw it*. Times in the record are for people: no
//   clock is ever compared with another's, so skew does no harm.
// - `lease_duration` must exceed `renew_deadline`: the difference is what a leader that has lost
// has
//   for stopping before another may begin.
// - Candidates ask at intervals with a random part, so that they do not do so in step.
// A leader that has lost never leads again: the process should end, and be started anew.
//
// What elections do not promise: that nobody believes to lead for a moment longer than it does. A
// process may be stopped right after it has asked Leads(). So every write that matters carries the
// resourceVersion that it was computed from.
//
//   LeaderElector elector({.lease = {"ringmaster-system", "ringmaster-operator"},
//                          .identity = "operator-0_5f1c", .address = "10.1.2.3:7471"},
//                         client, SystemClock());
//   for (;;) Sleep(elector.Step());
//
// Thread safety: Step and Release from one thread at a time; the readers from any.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_LEADER_ELECTION_H_
#define RINGMASTER_OPERATOR_CONTROLLER_LEADER_ELECTION_H_

#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/client.h"

namespace ringmaster::controller {

// On the lease: where its holder's rendezvous listens.
inline constexpr char kAnnotationLeaderAddress[] = "training.ringmaster.dev/rendezvous";

struct LeaderElectionOptions {
  kube::ObjectKey lease;
  std::string identity;  // no other process's, ever: "pod_random"
  std::string address;   // host:port that others are told while this one leads; may be empty
  Duration lease_duration = std::chrono::seconds(15);  // whole seconds, at least one
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  std::uint64_t seed = 0;  // of the intervals' random part

  // kInvalidArgument names what does not fit: lease_duration > renew_deadline > 1.2 * retry_period.
  absl::Status Validate() const;
};

class LeaderElector {
 public:
  enum class Standing {
    kFollowing,  // another leads, or nobody yet
    kLeading,
    kLost,  // led once and does not any more, for good
  };
  struct Leader {
    std::string identity;  // empty while nobody is known to lead
    std::string address;   // may be empty

    friend bool operator==(const Leader&, const Leader&) = default;
  };

  // `options` must be valid. The references must outlive the elector. The client's time-out should
  // be at most half of the renew deadline.
  LeaderElector(LeaderElectionOptions options, kube::Client& client, const Clock& clock);

  // Tries once to take or to renew the lease. Returns how long to wait until the next step. Blocks
  // as the client does.
  Duration Step();

  // Gives the lease up, so that another may take it at once; this one has then lost. Only after
  // everything that needs leadership has stopped. OK when it did not lead. An error of the client
  // means that others will wait for the lease to expire.
  absl::Status Release();

  // By the clock, now.
  Standing standing() const;
  bool Leads() const { return standing() == Standing::kLeading; }
  // Who holds the lease as far as is known: also this one, also one whose lease has run out.
  Leader leader() const;
  // When the server last answered a step; nothing before the first time.
  std::optional<SteadyTime> last_answer() const;

 private:
  struct Observed {
    kube::ObjectPtr lease;  // as stored; its record is the spec
    SteadyTime at;          // when this record was first seen
  };

  // All but these three need no lock: they run in Step's or Release's thread, which alone writes.
  absl::Status TakeOrRenew();
  absl::Status Write(const kube::Json& lease, SteadyTime asked);
  absl::Status CreateLease(SteadyTime asked);
  void Observe(kube::Json lease, SteadyTime now);
  bool HeldByMe() const;
  bool HeldByAnother(SteadyTime now) const;
  kube::Json NewRecord() const;
  void SetLeading(SteadyTime asked);
  void SetLost(const char* why);
  Duration Jittered(Duration period);

  const LeaderElectionOptions options_;
  kube::Client& client_;
  const Clock& clock_;
  std::minstd_rand random_;
  std::optional<Observed> observed_;

  mutable std::mutex mutex_;
  Standing standing_ = Standing::kFollowing;  // guarded by mutex_, as is all below
  SteadyTime renewed_{};                      // when the last successful renewal was sent
  Leader leader_;
  std::optional<SteadyTime> last_answer_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_LEADER_ELECTION_H_

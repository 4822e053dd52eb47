// The launcher's standing with the operator: dials, says Hello, keeps heartbeats, dials again after
// a broken stream, and tells on every new stream what the operator must know. The operator's
// absence stops nothing: what it would be told waits in the outbox.
//
// A dial is a race until somebody accepts. Behind an address may be a machine that is dark, and a
// Service sends half of the connections to a dead replica until its node is known to be: so while
// nobody answers another address is dialed every second. A leader that was named is tried first,
// and forgotten when it does not answer, until somebody names it again.
//
// Not thread-safe: belongs to the event loop's thread.
#ifndef RINGMASTER_LAUNCHER_RENDEZVOUS_SESSION_H_
#define RINGMASTER_LAUNCHER_RENDEZVOUS_SESSION_H_

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "launcher/event_loop.h"
#include "launcher/outbox.h"
#include "launcher/rendezvous_stream.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::launcher {

class RendezvousSession {
 public:
  struct Options {
    std::vector<std::string> addresses;  // of operators that know the leader; at least one
    std::string ca_pem;                  // whom the operator's certificate must be of; empty: none
    std::string token_file;              // read anew for each Hello, as it is renewed; empty: none
    rendezvous::v1::Hello hello;         // its round and token are kept current by the session
    // Before the next race; doubles until a stream has stood for as long as it may become.
    Duration first_delay = std::chrono::milliseconds(100);
    // With a try or two lost to a dead replica this is well below half of the time after which the
    // operator counts a worker as lost.
    Duration longest_delay = std::chrono::seconds(3);
    Duration head_start = std::chrono::seconds(1);       // before the next address is dialed too
    Duration connect_timeout = std::chrono::seconds(8);  // of one dial
    Duration answer_timeout = std::chrono::seconds(10);  // for the answer to a Hello
  };
  struct Handlers {
    std::function<void(const rendezvous::v1::Command&)> command;
    // The operator will never take this pod: its reason. The session does not dial again. Not
    // called where the Hello that was refused was said before Leaving(): as one that leaves the
    // worker may still be heard, so the session dials again.
    std::function<void(const std::string&)> refused;
  };

  // `loop` must outlive the session. Dials at once.
  RendezvousSession(EventLoop& loop, Options options, Handlers handlers);
  ~RendezvousSession();

  // Tells the operator, now or when it is there again.
  void Report(rendezvous::v1::Event event);
  // The worker has taken on this round.
  void EnterRound(std::int64_t round);
  // The one that was entered last; 0 before the first.
  std::int64_t round() const { return options_.hello.round(); }
  void ForgetShardsUpTo(std::int64_t step) { outbox_.ForgetShardsUpTo(step); }

  // From now on the worker is one that comes to say its last, which also one whose pod is
  // terminating may.
  void Leaving() { options_.hello.set_leaving(true); }

  // Tells what is left to tell, waits until the operator lets this worker go, and leaves; then
  // calls `done` once: with true when what was told is stored, with false when nobody has said so
  // within `patience`. Each operator that comes meanwhile is told all of it again.
  void Close(Duration patience, std::function<void(bool)> done);
  // A Close that goes on ends within `patience` from now.
  void Hasten(Duration patience);

 private:
  struct Attempt {
    std::string address;
    std::unique_ptr<RendezvousStream> stream;
    EventLoop::TimerId over = 0;
    bool connected = false;  // and waits, as another is being asked
  };

  void TryNext();
  std::string NextAddress();
  void Connected(int attempt);
  void Ask(int attempt);
  void Failed(int attempt, const std::string& why);
  void DropAttempts();
  void Lost(const std::string& why);
  void SayHello();
  void Take(const rendezvous::v1::ToWorker& message);
  void TakeAccepted(const rendezvous::v1::Accepted& accepted);
  void TakeRefused(const rendezvous::v1::Refused& refused);
  void Ended(const absl::Status& status);
  void Beat();
  void Pump();
  void Write(const rendezvous::v1::FromWorker& message);
  void FinishClosing(bool told);
  Duration NextDelay();

  EventLoop& loop_;
  Options options_;
  const Handlers handlers_;
  Outbox outbox_;
  std::unique_ptr<RendezvousStream> stream_;
  std::string address_;              // where stream_ leads, or whose dial failed last
  std::map<int, Attempt> attempts_;  // until somebody accepts
  int last_attempt_ = 0;
  size_t next_address_ = 0;
  std::string leader_;         // that was named and has not failed since; empty: none
  bool leader_named_ = false;  // just now: it goes first
  Duration delay_;
  std::minstd_rand random_;

  // Of the present stream.
  bool accepted_ = false;
  bool said_leaving_ = false;
  bool writing_ = false;
  bool heartbeat_due_ = false;
  bool writes_done_ = false;
  SteadyTime heard_{};
  SteadyTime accepted_since_{};
  SteadyTime last_beat_{};
  Duration heartbeat_{};
  Duration timeout_{};
  std::uint64_t sequence_ = 0;

  EventLoop::TimerId dial_timer_ = 0;
  EventLoop::TimerId beat_timer_ = 0;
  EventLoop::TimerId close_timer_ = 0;
  SteadyTime close_by_ = SteadyTime::max();
  bool refused_ = false;  // for good
  std::string why_away_;  // what was logged of the operator's absence; empty while it is there
  std::function<void(bool)> closed_;
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_RENDEZVOUS_SESSION_H_

// What the trainer was told and has not acted on yet. The channel's thread puts commands in at any
// time; the session looks at step boundaries, and is woken inside a collective operation when a
// command ends the round. It holds what each kind of command amounts to, not a queue: only the
// newest round matters, and a drain stays a drain.
//
// Thread-safe.
#ifndef RINGMASTER_RUNTIME_TRAIN_INBOX_H_
#define RINGMASTER_RUNTIME_TRAIN_INBOX_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "runtime/train/messages.h"

namespace ringmaster::train {

// Why a wait ended, most urgent first.
enum class Wake { kStopped, kClosed, kRound, kDrain, kDeadline };

class Inbox {
 public:
  // A round that is not newer than all before changes nothing.
  void Push(Command command);
  // The launcher is gone: nothing will come any more.
  void Close(const std::string& reason);

  // Waits for something that matters to a trainer without a round.
  Wake WaitForRound(Duration timeout);
  // The newest round, once.
  std::optional<Round> TakeRound();

  // Whether the current round is over: a newer one, a stop, or the end of the channel.
  bool RoundIsOver() const;

  // Whether this worker is to leave, and whether it is alone in that: a drain of the job outranks
  // one of this worker.
  bool draining() const;
  bool draining_alone() const;
  // Why: of the stop, the drain or the closing.
  std::string reason() const;
  // Whether a checkpoint was asked for and not made yet; it stays so over a round's end.
  bool checkpoint_requested() const;
  void CheckpointRequestIsMet();
  std::vector<CheckpointCommitted> TakeCommitted();
  // As TakeCommitted, but waits until there is one, the round is over, or the time has passed.
  std::vector<CheckpointCommitted> WaitForCommitted(Duration timeout);

  // While an Interrupt lives, `wake` is called, from the thread that pushes and at most once, when
  // the round is over; at once if it is already. `wake` must not call the inbox.
  class Interrupt {
   public:
    Interrupt(Inbox& inbox, std::function<void(const std::string& reason)> wake);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

   private:
    Inbox& inbox_;
  };

 private:
  bool OverLocked() const;
  void Changed();
  void Apply(Round round);
  void Apply(Drain drain);
  void Apply(CheckpointNow now);
  void Apply(Stop stop);
  void Apply(CheckpointCommitted committed);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  int64_t newest_round_ = 0;
  std::optional<Round> round_;
  bool stopped_ = false;
  bool closed_ = false;
  bool draining_ = false;
  bool alone_ = false;
  bool checkpoint_ = false;
  std::string reason_;
  std::vector<CheckpointCommitted> committed_;
  std::function<void(const std::string&)> wake_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_INBOX_H_

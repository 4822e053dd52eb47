// The threads that take workers in: whether a worker's token is good is asked over the network, and
// gRPC's own threads must not wait for that. Each greeting is one task; a thousand workers that
// come at once are taken in a few at a time.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_GREETERS_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_GREETERS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ringmaster::rendezvous {

class Greeters {
 public:
  Greeters();
  // Runs what was posted before, then ends.
  ~Greeters();

  void Post(std::function<void()> task);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool ending_ = false;                      // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_GREETERS_H_

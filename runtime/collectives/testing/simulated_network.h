// A network that exists only in numbers: ranks exchange real bytes in memory, and a clock of their
// own tells each when that would have happened on links of a given cost.
//
//   SimulatedNetwork network(NodeMap::Apart(64), CostModel());
//   const double seconds = network.Run([](Transport& t) { ...an algorithm... });
//
// The ranks are threads of which one runs at a time: the one whose clock is furthest behind, so a
// run is deterministic, and as exact at 64 ranks on one core as at two. Time is that of LogGP
// (Alexandrov et al. 1995): a message of n bytes takes alpha + n beta; a port carries one message
// at a time in each direction, and the sender's can begin the next after overhead + n beta;
// combining n bytes takes n gamma of the rank's own time. Each rank has ports to its node's other
// ranks; the ranks of a node share one to the other nodes. Nothing else costs time.
//
// Nothing gets lost, and no rank dies. Ranks that wait for one another in a circle are found at
// once and fail with kDeadlineExceeded.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_SIMULATED_NETWORK_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_SIMULATED_NETWORK_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/collectives/cost_model.h"
#include "runtime/collectives/node_map.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::testing {

class SimulatedNetwork {
 public:
  SimulatedNetwork(NodeMap nodes, const CostModel& model);
  ~SimulatedNetwork();

  // Runs `body` on every rank, with Begin before it and Finish after it, all clocks starting at 0.
  // Returns when the last rank was done, in seconds. Errors of a rank are failures of the test.
  double Run(const std::function<absl::Status(Transport&)>& body);

  // The most peers that a rank has exchanged messages with in the last run: what needs a connection
  // each.
  size_t most_peers() const;

 private:
  class RankTransport;
  friend class RankTransport;

  // Gives the turn to the waiting rank whose clock is furthest behind, and returns when it is this
  // one's again. `lock` holds mutex_.
  void Yield(std::unique_lock<std::mutex>& lock, RankTransport& self);
  void PassTurn();
  const LinkCost& LinkBetween(int a, int b) const;
  // When a message posted at `now` has arrived.
  double Carry(RankTransport& from, RankTransport& to, size_t bytes, double now);

  const NodeMap nodes_;
  const CostModel model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RankTransport>> ranks_;
  std::vector<double> out_free_;  // by node: when its port to the others can begin a message,
  std::vector<double> in_free_;   // and is done with what comes in
  bool stuck_ = false;            // every rank waits for another
};

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_SIMULATED_NETWORK_H_

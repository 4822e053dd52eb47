// Addresses for the pods of a run: a /24 of the loopback network, held by one process of this
// machine at a time.
//
// Linux answers on all of 127.0.0.0/8, so every pod can have an address of its own and listen on
// the same ports as on a cluster. The subnet 127.a.b.0/24 is taken by the name of an abstract
// socket, which lives exactly where the loopback network does (in a network namespace), belongs to
// no user's folder, and which the kernel frees when the process ends, however it ends.
#ifndef RINGMASTER_OPERATOR_NODE_LOOPBACK_H_
#define RINGMASTER_OPERATOR_NODE_LOOPBACK_H_

#include <mutex>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "common/file.h"

namespace ringmaster::node {

// Thread-safe. Holds its subnet until it is destroyed.
class LoopbackSubnet {
 public:
  // The first free subnet. Callers that use the same `name` never get the same one; only tests have
  // names of their own. kResourceExhausted when all are taken.
  static absl::StatusOr<LoopbackSubnet> Acquire(const std::string& name = "ringmaster-subnet");

  LoopbackSubnet(LoopbackSubnet&& other) noexcept;

  // The node's own address, 127.a.b.1.
  std::string host() const;

  // A free address for a pod, 127.a.b.2 to .254. kResourceExhausted when all are in use.
  absl::StatusOr<std::string> Take();

  // Gives an address back. One that was not taken is ignored.
  void Release(const std::string& address);

 private:
  LoopbackSubnet(UniqueFd claim, int a, int b) : claim_(std::move(claim)), a_(a), b_(b) {}

  std::string Address(int last) const;

  UniqueFd claim_;  // has the subnet's name
  int a_;
  int b_;
  std::mutex mutex_;
  std::set<int> taken_;
  int next_ = 2;
};

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_LOOPBACK_H_

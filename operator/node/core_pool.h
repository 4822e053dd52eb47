// The cores of this machine, each of which one pod at most has for itself: what a kubelet's static
// CPU manager does, without confining anybody. A pod is only told which ones are its own.
//
// Not thread-safe.
#ifndef RINGMASTER_OPERATOR_NODE_CORE_POOL_H_
#define RINGMASTER_OPERATOR_NODE_CORE_POOL_H_

#include <map>
#include <string>
#include <vector>

#include "common/cpu_topology.h"
#include "operator/node/process.h"

namespace ringmaster::node {

class CorePool {
 public:
  explicit CorePool(std::vector<Core> cores) : free_(std::move(cores)) {}

  // Where the process's environment asks for threads that are bound (RINGMASTER_BIND), takes as
  // many cores for the pod and adds RINGMASTER_CORES, which names them: all in one NUMA domain
  // where one has as many, in the one that has the most left. "none" where too few are left, and
  // when the pod is told twice, for a pod has one worker.
  void Tell(const std::string& uid, ProcessSpec& process);

  // What the pod had is free. A pod that had nothing is ignored.
  void Release(const std::string& uid);

 private:
  std::vector<Core> free_;                          // as ReadCores gives them
  std::map<std::string, std::vector<Core>> taken_;  // by UID
};

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_CORE_POOL_H_

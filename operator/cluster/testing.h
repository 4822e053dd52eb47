// A store that answers as a cluster with Ringmaster's CustomResourceDefinition does, for the tests
// of this folder.
#ifndef RINGMASTER_OPERATOR_CLUSTER_TESTING_H_
#define RINGMASTER_OPERATOR_CLUSTER_TESTING_H_

#include <memory>

#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"

namespace ringmaster::cluster::testing {

// What is checked in under crds/.
kube::Json CheckedInCrd();

// A store that serves CustomResourceDefinitions beside the built-in kinds, and admits TrainingJobs
// as the CRD does. It holds `crd`, unless that is null.
std::unique_ptr<kube::memory::MemoryStore> MakeCluster(const kube::Json& crd = CheckedInCrd());

}  // namespace ringmaster::cluster::testing

#endif  // RINGMASTER_OPERATOR_CLUSTER_TESTING_H_

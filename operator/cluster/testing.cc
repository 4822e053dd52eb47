#include "operator/cluster/testing.h"

#include "common/check.h"
#include "common/file.h"
#include "operator/api/admission.h"
#include "operator/api/yaml.h"
#include "operator/cluster/preflight.h"
#include "operator/kube/names.h"

namespace ringmaster::cluster::testing {

kube::Json CheckedInCrd() {
  const auto text = ReadFile("crds/training.ringmaster.dev_trainingjobs.yaml");
  RM_CHECK(text.ok(), "the checked-in CRD cannot be read");
  return api::ParseYaml(*text).value;
}

std::unique_ptr<kube::memory::MemoryStore> MakeCluster(const kube::Json& crd) {
  kube::memory::StoreOptions options;
  options.kinds.push_back(
      {.type = kCustomResourceDefinition, .problem_with_name = kube::ProblemWithDnsSubdomain});
  auto store = kube::memory::MemoryStore::Open(std::move(options));
  RM_CHECK(store.ok(), "no store");
  (*store)->SetAdmission(kube::kTrainingJob, [](kube::memory::AdmissionRequest& request) {
    return api::AdmitTrainingJob(request.object, request.current);
  });
  if (!crd.is_null()) {
    const auto created = (*store)->Create(kCustomResourceDefinition, crd);
    RM_CHECK(created.ok(), "the CRD is not taken");
  }
  return *std::move(store);
}

}  // namespace ringmaster::cluster::testing

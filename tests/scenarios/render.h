// Objects as scenarios print them: what a person would look at, in lines that make readable diffs.
#ifndef RINGMASTER_TESTS_SCENARIOS_RENDER_H_
#define RINGMASTER_TESTS_SCENARIOS_RENDER_H_

#include <string>
#include <vector>

#include "operator/kube/types.h"

namespace ringmaster::scenarios {

// The status of a TrainingJob.
std::string RenderStatus(const kube::Json& job);

// One line a pod: name, phase, whether it is on its way out.
std::string RenderPods(const std::vector<kube::ObjectPtr>& pods);

// What must hold of every status at every moment, broken; empty when all holds: of Training,
// Suspended, Succeeded and Failed at most one is true, and the state word is that one's.
std::string BrokenInvariants(const kube::Json& job);

}  // namespace ringmaster::scenarios

#endif  // RINGMASTER_TESTS_SCENARIOS_RENDER_H_

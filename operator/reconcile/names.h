// Names, labels and annotations of what a job owns.
#ifndef RINGMASTER_OPERATOR_RECONCILE_NAMES_H_
#define RINGMASTER_OPERATOR_RECONCILE_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace ringmaster::reconcile {

// How many incidents the job had counted when the pod was created. A failure of a pod is a
// consequence of a later incident of its round exactly when this is less than the count.
inline constexpr char kAnnotationIncidents[] = "training.ringmaster.dev/incidents";

// `<job>-<index>-<incarnation>`
std::string PodName(const std::string& job, int index, int incarnation);

// Selects the workers of a job.
std::string Selector(const std::string& job);

// "a, b and 2 more": a list of names for people, of which at most `limit` are written out.
std::string NameList(const std::vector<std::string>& names, std::size_t limit = 3);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_NAMES_H_

// A valid manifest for the tests of this folder, and what is wrong with one.
#ifndef RINGMASTER_OPERATOR_API_TESTING_H_
#define RINGMASTER_OPERATOR_API_TESTING_H_

#include <string>
#include <vector>

#include "operator/api/parse.h"
#include "operator/api/validation.h"

namespace ringmaster::api {

inline constexpr char kDigits[] = R"(apiVersion: training.ringmaster.dev/v1alpha1
kind: TrainingJob
metadata:
  name: digits
spec:
  workers:
    replicas: 4
    minReplicas: 1
  trainer:
    model:
      zoo: {name: lenet-bn}
    data:
      csv: {path: digits.csv, labelColumn: 64, classes: 10, shape: [1, 8, 8], scale: 16}
    optimizer:
      sgd: {learningRate: 0.05, momentum: 0.9}
    batch: {size: 64}
    epochs: 20
  checkpoint:
    everySteps: 50
)";

inline training::v1alpha1::TrainingJob Digits() {
  return ParseManifest(kDigits, "job.yaml").value().job;
}

inline std::vector<std::string> ProblemLines(const training::v1alpha1::TrainingJob& job) {
  std::vector<std::string> lines;
  for (const schema::Problem& problem : Validate(job))
    lines.push_back(problem.path + ": " + problem.message);
  return lines;
}

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_TESTING_H_

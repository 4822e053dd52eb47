// Whatever pod template the API accepts, the operator can make pods of: templates are damaged at
// random, many times. The seed is printed; RINGMASTER_TEST_SEED repeats a run.
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/api/validation.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"
#include "tests/support/random_test.h"

namespace ringmaster::testing {
namespace {

namespace v1 = training::v1alpha1;
using Json = nlohmann::json;

constexpr int kRounds = 2000;
constexpr char kTemplate[] = R"({
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [{"uid": "u"}]},
    "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "nodeSelector": {"e": "f"},
             "containers": [{"name": "main", "image": "i", "command": ["sh"], "args": ["-c", "true"],
                             "env": [{"name": "A", "value": "1"}],
                             "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                            {"name": "sidecar"}]}})";

class PodTemplateTest : public RandomTest {
 protected:
  void Damage(Json& value) {
    if (value.is_structured() && !value.empty() && Below(4) != 0) {
      auto child = value.begin();
      std::advance(child, static_cast<std::ptrdiff_t>(Below(value.size())));
      return Damage(*child);
    }
    static const std::vector<Json> kValues = {
        nullptr, true, -1, 4.5, "text", Json::array(), Json::object(), {1, nullptr}, {{"name", 5}}};
    value = kValues[Below(kValues.size())];
  }
};

reconcile::Observed JobOf(const Json& pod_template) {
  reconcile::Observed observed = reconcile::testing::Created(2);
  v1::TrainingJobSpec& spec = observed.job.spec;
  spec.trainer.reset();
  spec.launch.reset();
  spec.workers.template_ = pod_template;
  spec.checkpoint.volume = Json::parse(R"({"hostPath": {"path": "/data"}})");
  return observed;
}

bool Accepts(const v1::TrainingJob& job) {
  Json object = v1::ToJson(job);
  return schema::CheckAndDefault(v1::SchemaOf<v1::TrainingJob>(), object).empty() &&
         api::Validate(job).empty();
}

TEST_F(PodTemplateTest, WhatTheApiAcceptsBecomesPods) {
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    Json pod_template = Json::parse(kTemplate);
    for (std::size_t n = 1 + Below(3); n > 0; --n) Damage(pod_template);
    const reconcile::Observed observed = JobOf(pod_template);
    if (!Accepts(observed.job)) continue;
    ++accepted;
    ASSERT_NO_THROW({
      const reconcile::Decision decision = reconcile::Reconcile(observed);
      EXPECT_EQ(reconcile::testing::CreatedPods(decision).size(), 2u) << pod_template;
    }) << pod_template;
  }
  EXPECT_GT(accepted, kRounds / 20) << "too few are accepted to say anything";
  EXPECT_LT(accepted, kRounds) << "nothing was damaged";
}

}  // namespace
}  // namespace ringmaster::testing

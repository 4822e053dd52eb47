#include "operator/kube/object.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"

namespace ringmaster::kube {
namespace {

TEST(ObjectTest, ReadersAnswerEmptyForWhatIsAbsentOrOfAnotherType) {
  for (const Json& object :
       {Json(nullptr), Json(3), Json::array(), Json{{"metadata", "text"}},
        Json{{"metadata", {{"labels", 1}, {"finalizers", "x"}, {"ownerReferences", 2}}}}}) {
    EXPECT_EQ(Name(object), "");
    EXPECT_EQ(Generation(object), 0);
    EXPECT_EQ(Label(object, "a"), std::nullopt);
    EXPECT_TRUE(Labels(object).empty());
    EXPECT_FALSE(HasFinalizer(object, "f"));
    EXPECT_EQ(ControllerOf(object), nullptr);
    EXPECT_FALSE(IsOwnedBy(object, "uid"));
    EXPECT_FALSE(FindTime(object, {"metadata", "creationTimestamp"}).has_value());
  }
}

TEST(ObjectTest, OwnerReferencesAreFoundAgain) {
  Json owner = NewObject(kTrainingJob, {"ns", "job"});
  owner["metadata"]["uid"] = "u-1";
  Json object = NewObject(kPod, {"ns", "pod"});
  AddOwnerReference(object, OwnerReference(kTrainingJob, owner));
  EXPECT_TRUE(IsOwnedBy(object, "u-1"));
  EXPECT_FALSE(IsOwnedBy(object, "u-2"));
  ASSERT_NE(ControllerOf(object), nullptr);
  EXPECT_EQ(FindString(*ControllerOf(object), {"kind"}), "TrainingJob");
  EXPECT_TRUE(FindBool(*ControllerOf(object), {"blockOwnerDeletion"}));
}

TEST(ObjectTest, MergeDiffIsWhatMergePatchNeedsToGetThere) {
  const Json from = {
      {"same", 1}, {"gone", 1}, {"deep", {{"a", 1}, {"b", 2}}}, {"list", {1, 2}}, {"typed", 1}};
  const Json to = {{"same", 1},
                   {"deep", {{"a", 1}, {"c", 3}}},
                   {"list", {1}},
                   {"typed", {{"x", 1}}},
                   {"new", "n"}};
  const Json diff = MergeDiff(from, to);
  EXPECT_EQ(
      diff,
      Json::parse(
          R"({"gone": null, "deep": {"b": null, "c": 3}, "list": [1], "typed": {"x": 1}, "new": "n"})"));
  Json patched = from;
  MergePatch(patched, diff);
  EXPECT_EQ(patched, to);
}

TEST(ObjectTest, MergeDiffOfEqualObjectsIsEmpty) {
  const Json object = {{"a", {{"b", {1, 2}}}}};
  EXPECT_EQ(MergeDiff(object, object), Json::object());
}

TEST(ObjectTest, MergeDiffDoesNotTellAnEmptyListFromNone) {
  const Json before = {{"result", {{"steps", 1}}}};
  EXPECT_EQ(MergeDiff(before, {{"result", {{"steps", 1}, {"labels", Json::array()}}}}),
            Json::object());
  EXPECT_EQ(MergeDiff({{"list", {1}}}, {{"list", Json::array()}}), Json({{"list", Json::array()}}));
}

TEST(ObjectTest, TimesHaveTheFormsOfTimeAndMicroTime) {
  const Time time = Time(std::chrono::seconds(1767225600)) + std::chrono::microseconds(1500);
  EXPECT_EQ(MetaTime(time), "2026-01-01T00:00:00Z");
  EXPECT_EQ(MicroTime(time), "2026-01-01T00:00:00.001500Z");
  const Json object = {{"at", MicroTime(time)}};
  EXPECT_EQ(FindTime(object, {"at"}), time);
}

TEST(ErrorsTest, AReasonIsTheCodesUsualOneUnlessItWasGiven) {
  EXPECT_EQ(Reason(absl::OkStatus()), "");
  EXPECT_EQ(Reason(absl::AbortedError("x")), kReasonConflict);
  EXPECT_EQ(Reason(NotFound(kPod, {"ns", "a"})), kReasonNotFound);
  EXPECT_EQ(Reason(absl::InvalidArgumentError("x")), kReasonInvalid);
  EXPECT_EQ(Reason(BadRequest("x")), kReasonBadRequest);
  EXPECT_EQ(NotFound(kLease, {"ns", "a"}).message(), "leases.coordination.k8s.io \"a\" not found");
}

}  // namespace
}  // namespace ringmaster::kube

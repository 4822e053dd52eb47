#include "operator/controller/kept_object.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::controller {
namespace {

using kube::Json;

ObjectPtr Object(int value) {
  return std::make_shared<const Json>(Json{{"value", value}, {"ballast", "much"}});
}

Json WithoutBallast(const Json& object) {
  Json left = object;
  left.erase("ballast");
  return left;
}

const Json kLeft = {{"value", 1}};

TEST(KeptObjectTest, IsNothingUntilItIsGivenAnObject) {
  EXPECT_EQ(KeptObject().Read(), nullptr);
}

TEST(KeptObjectTest, WithoutATrimIsTheObjectItself) {
  const ObjectPtr object = Object(1);
  ObjectPtr left;
  EXPECT_EQ(KeptObject(object, {}, &left).Read(), object);
  EXPECT_EQ(left, object);
}

TEST(KeptObjectTest, WithATrimIsWhatThatLeaves) {
  const KeptObject kept(Object(1), WithoutBallast);
  EXPECT_EQ(*kept.Read(), kLeft);
  EXPECT_EQ(*kept.Read(), kLeft) << "and again, after nobody held it";
}

TEST(KeptObjectTest, IsUnpackedOnceForAllWhoHoldIt) {
  const KeptObject kept(Object(1), WithoutBallast);
  const KeptObject copy = kept;
  const ObjectPtr held = kept.Read();
  EXPECT_EQ(kept.Read(), held);
  EXPECT_EQ(copy.Read(), held);
}

TEST(KeptObjectTest, HoldsNothingUnpackedItself) {
  const KeptObject kept(Object(1), WithoutBallast);
  const std::weak_ptr<const Json> read = kept.Read();
  EXPECT_TRUE(read.expired());
}

TEST(KeptObjectTest, NeedNotBeUnpackedWhileWhatTheTrimLeftIsHeld) {
  ObjectPtr left;
  const KeptObject kept(Object(1), WithoutBallast, &left);
  EXPECT_EQ(kept.Read(), left);
  left = nullptr;
  EXPECT_EQ(*kept.Read(), kLeft);
}

TEST(KeptObjectTest, OfALaterObjectIsNeverTheEarlierOneThatIsStillHeld) {
  KeptObject kept(Object(1), WithoutBallast);
  const ObjectPtr earlier = kept.Read();
  kept = KeptObject(Object(2), WithoutBallast);
  EXPECT_EQ((*kept.Read())["value"], 2);
  EXPECT_EQ((*earlier)["value"], 1);
}

}  // namespace
}  // namespace ringmaster::controller

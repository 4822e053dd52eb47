// The checked-in CRD, read by our own YAML reader: what a cluster would be told is what the table
// says.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/yaml.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

Json ReadCrd() {
  std::ifstream file("crds/training.ringmaster.dev_trainingjobs.yaml");
  std::stringstream text;
  text << file.rdbuf();
  YamlDocument document = ParseYaml(text.str());
  EXPECT_TRUE(document.errors.empty()) << document.errors[0].message;
  return document.value;
}

TEST(CrdTest, NamesTheKindAsTheTableDoes) {
  const Json crd = ReadCrd();
  const schema::Resource& resource =
      *training::v1alpha1::SchemaOf<training::v1alpha1::TrainingJob>().resource;
  EXPECT_EQ(crd["spec"]["group"], resource.group);
  EXPECT_EQ(crd["spec"]["names"]["shortNames"], Json(resource.short_names));
  EXPECT_EQ(crd["spec"]["versions"][0]["name"], resource.version);
  EXPECT_EQ(crd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"],
            ".spec.workers.replicas");
}

// Every path that kubectl, an autoscaler or a printer column follows leads to a field of the
// schema.
TEST(CrdTest, PointsOnlyAtFieldsThatExist) {
  const Json crd = ReadCrd();
  const Json& version = crd["spec"]["versions"][0];
  std::vector<std::string> paths;
  for (const Json& column : version["additionalPrinterColumns"])
    paths.push_back(column["jsonPath"]);
  for (const Json& path : version["subresources"]["scale"]) paths.push_back(path);
  for (const std::string& path : paths) {
    if (path == ".metadata.creationTimestamp") continue;
    const Json* at = &version["schema"]["openAPIV3Schema"];
    const auto steps = schema::ParsePath(path.substr(1));
    ASSERT_TRUE(steps.ok()) << path;
    for (const schema::Step& step : *steps) {
      ASSERT_TRUE((*at)["properties"].contains(std::get<std::string>(step))) << path;
      at = &(*at)["properties"][std::get<std::string>(step)];
    }
  }
}

}  // namespace
}  // namespace ringmaster::api

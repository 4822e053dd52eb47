#include "cli/kubectl/output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/kubectl/connection.h"
#include "operator/kube/object.h"
#include "proto/schema/yaml_writer.h"

namespace ringmaster::cli::kubectl {

using kube::Json;

std::string FormatObject(const Json& object, const std::string& output) {
  if (output == kName) return fmt::format("{}\n", QualifiedName(kube::Name(object)));
  return output == kYaml ? schema::ToYaml(object) : fmt::format("{}\n", object.dump(2));
}

std::string FormatObjects(const std::vector<Json>& objects, const std::string& output) {
  if (output != kName)
    return FormatObject({{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}, output);
  std::string names;
  for (const Json& object : objects) names += FormatObject(object, output);
  return names;
}

}  // namespace ringmaster::cli::kubectl

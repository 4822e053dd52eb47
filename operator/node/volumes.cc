#include "operator/node/volumes.h"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/base64.h"
#include "common/file.h"
#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::node {
namespace {

using kube::Json;

constexpr std::string_view kPathStarts = "=:, \"'";

const Json* Volumes(const Json& pod) {
  const Json* volumes = kube::Find(pod, {"spec", "volumes"});
  return volumes != nullptr && volumes->is_array() ? volumes : nullptr;
}

std::string LocalPath(const std::string& name, const PlanContext& context) {
  return context.volume_directory + "/" + name;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> DataOf(const Json& object) {
  std::map<std::string, std::string> entries;
  const bool secret = kube::FindString(object, {"kind"}) == "Secret";
  for (const char* field : {"data", "stringData"}) {
    const Json* data = kube::Find(object, {field});
    if (data == nullptr || !data->is_object()) continue;
    for (const auto& [key, value] : data->items()) {
      if (!value.is_string())
        return absl::InvalidArgumentError(fmt::format("{}.{}: not a string", field, key));
      std::string text = value.get<std::string>();
      if (secret && std::string_view(field) == "data") {
        auto decoded = DecodeBase64(text);
        if (!decoded.ok()) return Annotate(decoded.status(), "data." + key);
        text = *std::move(decoded);
      }
      entries[key] = std::move(text);
    }
  }
  return entries;
}

absl::StatusOr<std::map<std::string, std::string>> VolumePaths(const Json& pod,
                                                               const PlanContext& context) {
  std::map<std::string, std::string> paths;
  const Json* volumes = Volumes(pod);
  if (volumes == nullptr) return paths;
  for (const Json& volume : *volumes) {
    const std::string name = kube::FindString(volume, {"name"});
    const std::string host_path = kube::FindString(volume, {"hostPath", "path"});
    if (!host_path.empty()) {
      paths[name] = host_path;
    } else if (volume.contains("emptyDir") || volume.contains("configMap") ||
               volume.contains("secret")) {
      paths[name] = LocalPath(name, context);
    } else {
      return absl::UnimplementedError(
          fmt::format("spec.volumes[{}]: this machine runs pods with emptyDir, hostPath, configMap "
                      "and secret volumes only",
                      name));
    }
  }
  return paths;
}

absl::Status MaterialiseVolumes(const Json& pod, const PlanContext& context) {
  const Json* volumes = Volumes(pod);
  if (volumes == nullptr) return absl::OkStatus();
  for (const Json& volume : *volumes) {
    if (volume.contains("hostPath")) continue;
    const std::string path = LocalPath(kube::FindString(volume, {"name"}), context);
    RM_RETURN_IF_ERROR(MakeDirectories(path));
    const std::string config_map = kube::FindString(volume, {"configMap", "name"});
    const std::string secret = kube::FindString(volume, {"secret", "secretName"});
    if (config_map.empty() && secret.empty()) continue;
    RM_ASSIGN_OR_RETURN(const Json object,
                        context.read(config_map.empty() ? kube::kSecret : kube::kConfigMap,
                                     config_map.empty() ? secret : config_map));
    RM_ASSIGN_OR_RETURN(const auto entries, DataOf(object));
    for (const auto& [key, value] : entries) {
      if (key.find('/') != std::string::npos || key == "..")
        continue;  // no valid key; never leave the folder
      RM_RETURN_IF_ERROR(WriteFileAtomically(path + "/" + key, value));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Mounts> ContainerMounts(const Json& container,
                                       const std::map<std::string, std::string>& volumes) {
  Mounts mounts;
  const Json* list = kube::Find(container, {"volumeMounts"});
  if (list == nullptr || !list->is_array()) return mounts;
  for (const Json& mount : *list) {
    const std::string name = kube::FindString(mount, {"name"});
    const auto volume = volumes.find(name);
    if (volume == volumes.end()) {
      return absl::InvalidArgumentError(
          fmt::format("volumeMounts[{}]: spec.volumes has no volume of that name", name));
    }
    std::string sub_path = kube::FindString(mount, {"subPath"});
    if (sub_path.find("..") != std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("volumeMounts[{}].subPath: '..' is not allowed", name));
    }
    mounts[kube::FindString(mount, {"mountPath"})] =
        sub_path.empty() ? volume->second : volume->second + "/" + sub_path;
  }
  return mounts;
}

std::string RewritePaths(const std::string& text, const Mounts& mounts) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const bool may_start = at == 0 || kPathStarts.find(text[at - 1]) != std::string_view::npos;
    size_t matched = 0;
    const std::string* target = nullptr;
    for (const auto& [mount, path] : mounts) {
      const size_t end = at + mount.size();
      if (may_start && mount.size() > matched && text.compare(at, mount.size(), mount) == 0 &&
          (end == text.size() || text[end] == '/' ||
           kPathStarts.find(text[end]) != std::string_view::npos)) {
        matched = mount.size();
        target = &path;
      }
    }
    if (target == nullptr) {
      result += text[at++];
    } else {
      result += *target;
      at += matched;
    }
  }
  return result;
}

}  // namespace ringmaster::node

#include "operator/kube/conformance/client_conformance.h"

#include <thread>

namespace ringmaster::kube::conformance {
void ClientConformance::SetUp() {
  server_ = GetParam().make();
  ns_ = server_->FreshNamespace();
}

Json ClientConformance::ConfigMap(const std::string& name, const Json& data) const {
  Json object = NewObject(kConfigMap, Key(name));
  object["data"] = data;
  return object;
}

Json ClientConformance::Job(const std::string& name) const {
  Json object = NewObject(kTrainingJob, Key(name));
  const Json container = {{"name", "main"}, {"image", "none"}, {"command", {"true"}}};
  object["spec"]["workers"] = {{"replicas", 2},
                               {"template", {{"spec", {{"containers", {container}}}}}}};
  return object;
}

Json ClientConformance::Pod(const std::string& name, const std::string& node) const {
  Json object = NewObject(kPod, Key(name));
  object["spec"]["containers"] = {{{"name", "main"}, {"image", "none"}}};
  object["spec"]["schedulerName"] = "nobody";
  if (!node.empty()) object["spec"]["nodeName"] = node;
  return object;
}

Json ClientConformance::Create(const ResourceType& type, const Json& object) {
  return Must(client().Create(type, object));
}

Json ClientConformance::Get(const ResourceType& type, const std::string& name) {
  return Must(client().Get(type, Key(name)));
}

void ClientConformance::Delete(const ResourceType& type, const std::string& name,
                               const DeleteOptions& options) {
  const absl::Status status = client().Delete(type, Key(name), options);
  if (!status.ok()) throw std::runtime_error("delete " + name + ": " + status.ToString());
}

bool ClientConformance::Exists(const ResourceType& type, const std::string& name) {
  const auto found = client().Get(type, Key(name));
  if (!found.ok() && found.status().code() != absl::StatusCode::kNotFound) {
    throw std::runtime_error("get " + name + ": " + found.status().ToString());
  }
  return found.ok();
}

void ClientConformance::EventuallyGone(const ResourceType& type, const std::string& name) {
  Eventually(name + " to be gone", [&] { return !Exists(type, name); });
}

void ClientConformance::Eventually(const std::string& what, const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("waited in vain for " + what);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // polls a server; the deadline decides
  }
}

WatchEvent ClientConformance::NextEvent(WatchStream& stream) {
  while (true) {
    WatchEvent event = Must(stream.Next(kDeadline));
    if (event.type != WatchEventType::kBookmark) return event;
  }
}

std::string ClientConformance::ListVersion(const ResourceType& type) {
  return Must(client().List(type, ns_, {})).resource_version;
}

std::unique_ptr<WatchStream> ClientConformance::Watch(const ResourceType& type,
                                                      const std::string& resource_version,
                                                      const std::string& selector) {
  return Must(client().Watch(type, ns_,
                             {.resource_version = resource_version, .label_selector = selector}));
}

}  // namespace ringmaster::kube::conformance

#include "operator/kube/memory/field_set.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster::kube::memory {
namespace {

constexpr char kSelf[] = ".";

// The fields that together name an item of the list `field`; none when the list is atomic.
std::vector<std::string> KeysOfList(const std::string& field, const Json& list) {
  static const auto* const kKeys = new std::map<std::string, std::string>{
      {"containers", "name"},       {"initContainers", "name"},
      {"volumes", "name"},          {"env", "name"},
      {"conditions", "type"},       {"ownerReferences", "uid"},
      {"volumeMounts", "mountPath"}};
  const bool objects =
      std::all_of(list.begin(), list.end(), [](const Json& item) { return item.is_object(); });
  if (!objects) return {};
  if (field == "ports") {
    const bool of_container = !list.empty() && list[0].contains("containerPort");
    return {of_container ? "containerPort" : "port", "protocol"};
  }
  const auto it = kKeys->find(field);
  return it == kKeys->end() ? std::vector<std::string>() : std::vector<std::string>{it->second};
}

// "k:{...}" for an item of a keyed list.
std::string StepOfItem(const Json& item, const std::vector<std::string>& keys) {
  Json name = Json::object();
  for (const std::string& key : keys) {
    const auto it = item.find(key);
    if (it != item.end()) {
      name[key] = *it;
    } else if (key == "protocol") {
      name[key] = "TCP";  // the API's default, which the server would have filled in
    }
  }
  return "k:" + name.dump();
}

// The place of the item that a step names; -1 when it is not there.
std::ptrdiff_t FindItem(const Json& list, const std::string& step) {
  const Json name = Json::parse(step.substr(2), nullptr, false);
  std::vector<std::string> keys;
  for (const auto& [key, value] : name.items()) keys.push_back(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_object() && StepOfItem(list[i], keys) == step)
      return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

bool IsField(const std::string& step) {
  return step.starts_with("f:");
}
bool IsItem(const std::string& step) {
  return step.starts_with("k:");
}

const Json* Child(const Json& value, const std::string& step) {
  if (IsField(step) && value.is_object()) {
    const auto it = value.find(step.substr(2));
    return it == value.end() ? nullptr : &*it;
  }
  if (!IsItem(step) || !value.is_array()) return nullptr;
  const std::ptrdiff_t at = FindItem(value, step);
  return at < 0 ? nullptr : &value[static_cast<std::size_t>(at)];
}

void EraseChild(Json& value, const std::string& step) {
  if (IsField(step) && value.is_object()) {
    value.erase(step.substr(2));
  } else if (IsItem(step) && value.is_array()) {
    const std::ptrdiff_t at = FindItem(value, step);
    if (at >= 0) value.erase(static_cast<std::size_t>(at));
  }
}

void Compare(const Json& mine, const Json& theirs, const Json& current, const Json& applied,
             FieldSteps& at, std::vector<FieldSteps>& found) {
  for (const auto& [step, below] : mine.items()) {
    const auto other = theirs.find(step);
    const Json* now = Child(current, step);
    const Json* wanted = Child(applied, step);
    if (step == kSelf || other == theirs.end() || now == nullptr || wanted == nullptr) continue;
    at.push_back(step);
    if (!below.empty() && !other->empty()) {
      Compare(below, *other, *now, *wanted, at, found);
    } else if (below.empty() && other->empty() && *now != *wanted) {
      found.push_back(at);
    }
    at.pop_back();
  }
}

}  // namespace

Json FieldsOf(const Json& value, const std::string& field) {
  Json fields = Json::object();
  if (value.is_object()) {
    for (const auto& [name, below] : value.items()) fields["f:" + name] = FieldsOf(below, name);
  } else if (value.is_array()) {
    const std::vector<std::string> keys = KeysOfList(field, value);
    if (keys.empty()) return fields;
    for (const Json& item : value) {
      Json below = FieldsOf(item);
      below[kSelf] = Json::object();
      fields[StepOfItem(item, keys)] = std::move(below);
    }
  }
  return fields;
}

void MergeApplied(Json& target, const Json& applied, const std::string& field) {
  if (target.is_object() && applied.is_object()) {
    for (const auto& [name, value] : applied.items()) MergeApplied(target[name], value, name);
    return;
  }
  const std::vector<std::string> keys = target.is_array() && applied.is_array()
                                            ? KeysOfList(field, applied)
                                            : std::vector<std::string>();
  if (keys.empty()) {
    target = applied;
    return;
  }
  for (const Json& item : applied) {
    const std::ptrdiff_t at = FindItem(target, StepOfItem(item, keys));
    if (at < 0) {
      target.push_back(item);
    } else {
      MergeApplied(target[static_cast<std::size_t>(at)], item);
    }
  }
}

std::vector<FieldSteps> Disagreements(const Json& mine, const Json& theirs, const Json& current,
                                      const Json& applied) {
  std::vector<FieldSteps> found;
  FieldSteps at;
  Compare(mine, theirs, current, applied, at, found);
  return found;
}

void RemoveFields(Json& object, const Json& dropped, const Json& kept) {
  static const Json* const kNothing = new Json(Json::object());
  for (const auto& [step, below] : dropped.items()) {
    const auto still = kept.find(step);
    const bool owned_whole = below.empty() || (below.contains(kSelf) && IsItem(step));
    if (step == kSelf) continue;
    if (owned_whole && still == kept.end()) {
      EraseChild(object, step);
      continue;
    }
    auto* child = const_cast<Json*>(Child(object, step));  // `object` is ours to change
    if (child == nullptr) continue;
    RemoveFields(*child, below, still == kept.end() ? *kNothing : *still);
    if (child->empty() && still == kept.end()) EraseChild(object, step);
  }
}

void EraseSteps(Json& set, const FieldSteps& steps) {
  Json* at = &set;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const auto it = at->find(steps[i]);
    if (it == at->end()) return;
    at = &*it;
  }
  if (!steps.empty()) at->erase(steps.back());
}

std::string ToText(const FieldSteps& steps) {
  std::string text;
  for (const std::string& step : steps) {
    if (IsField(step)) {
      text += "." + step.substr(2);
      continue;
    }
    const Json name = Json::parse(step.substr(2), nullptr, false);
    std::string inside;
    for (const auto& [key, value] : name.items()) {
      inside += fmt::format("{}{}={}", inside.empty() ? "" : ",", key, value.dump());
    }
    text += "[" + inside + "]";
  }
  return text;
}

}  // namespace ringmaster::kube::memory

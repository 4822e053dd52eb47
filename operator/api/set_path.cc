#include "operator/api/set_path.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/api/metadata.h"
#include "operator/api/yaml.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/path.h"
#include "proto/schema/suggest.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using schema::Field;
using schema::Shape;
using schema::Step;
using schema::Type;

// Where the walk stands: inside a message, at a field's value (a list or map whole, or one item of
// it), or inside raw JSON.
struct Place {
  const schema::Message* message = nullptr;
  const Field* field = nullptr;
  bool item = false;
};

absl::Status Wrong(std::string message) {
  return absl::InvalidArgumentError(std::move(message));
}

Place Enter(const Field& field, bool item) {
  const bool single = item || field.shape == Shape::kSingle;
  if (single && field.type == Type::kMessage) return {field.message, &field, item};
  // The root's metadata is raw to the CRD, but has fields of its own.
  if (field.type == Type::kRaw && field.name == "metadata")
    return {&ObjectMetaSchema(), &field, item};
  return {nullptr, &field, item};
}

absl::StatusOr<Place> StepByName(const Place& at, const std::string& name,
                                 const std::string& path) {
  if (at.message != nullptr) {
    if (const Field* field = schema::FindField(*at.message, name)) return Enter(*field, false);
    std::vector<std::string> known;
    for (const Field& field : at.message->fields) known.push_back(field.name);
    const auto nearest = schema::Nearest(name, known);
    return Wrong(fmt::format("{}: unknown field{}", path,
                             nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
  }
  if (at.field->type == Type::kRaw) return at;
  if (!at.item && at.field->shape == Shape::kMap) return Enter(*at.field, true);
  return Wrong(fmt::format("{}: {} has no fields", path, at.field->name));
}

absl::StatusOr<Place> StepByIndex(const Place& at, const std::string& path) {
  if (at.message == nullptr && at.field->type == Type::kRaw) return at;
  if (at.message != nullptr || at.item || at.field->shape != Shape::kList)
    return Wrong(fmt::format("{}: not a list", path));
  return Enter(*at.field, true);
}

// The schema's place at the end of the path.
absl::StatusOr<Place> Resolve(const std::vector<Step>& steps) {
  Place place{&training::v1alpha1::SchemaOf<training::v1alpha1::TrainingJob>(), nullptr, false};
  std::string path;
  for (const Step& step : steps) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      path = schema::Join(path, *name);
      RM_ASSIGN_OR_RETURN(place, StepByName(place, *name, path));
    } else {
      path = schema::Join(path, std::get<std::size_t>(step));
      RM_ASSIGN_OR_RETURN(place, StepByIndex(place, path));
    }
  }
  return place;
}

bool IsText(const Place& place) {
  if (place.field == nullptr || (!place.item && place.field->shape != Shape::kSingle)) return false;
  return place.field->type == Type::kString || place.field->type == Type::kEnum ||
         place.field->type == Type::kTimestamp;
}

bool FitsShape(const Place& place, const Json& value) {
  if (place.message != nullptr) return value.is_object();
  if (place.field->type == Type::kRaw) return true;
  if (!place.item && place.field->shape == Shape::kList) return value.is_array();
  if (!place.item && place.field->shape == Shape::kMap) return value.is_object();
  return place.field->type == Type::kBool ? value.is_boolean() : value.is_number();
}

std::string_view Wanted(const Place& place) {
  if (place.message != nullptr || (!place.item && place.field->shape == Shape::kMap))
    return "an object: {name: value, ...}";
  if (!place.item && place.field->shape == Shape::kList) return "a list: [a, b, ...]";
  if (place.field->type == Type::kBool) return "true or false";
  return place.field->type == Type::kDouble ? "a number" : "an integer";
}

absl::StatusOr<Json> ReadValue(const Place& place, const std::string& path, std::string_view text) {
  if (text == "null") return Json(nullptr);
  if (IsText(place)) return Json(std::string(text));
  YamlDocument document = ParseYaml(text);
  if (!document.errors.empty())
    return Wrong(fmt::format("{}: '{}': {}", path, text, document.errors[0].message));
  if (!FitsShape(place, document.value))
    return Wrong(fmt::format("{}: '{}' is not {}", path, text, Wanted(place)));
  return std::move(document.value);
}

// The step's value inside `at`, made where it is missing.
absl::StatusOr<Json*> Descend(Json* at, const Step& step, const std::string& path) {
  if (const auto* name = std::get_if<std::string>(&step)) {
    if (at->is_null()) *at = Json::object();
    if (!at->is_object()) return Wrong(fmt::format("{}: what holds it is not an object", path));
    return &(*at)[*name];
  }
  const std::size_t index = std::get<std::size_t>(step);
  if (at->is_null()) *at = Json::array();
  if (!at->is_array()) return Wrong(fmt::format("{}: what holds it is not a list", path));
  if (index > at->size()) return Wrong(fmt::format("{}: the list has {} items", path, at->size()));
  if (index == at->size()) at->push_back(nullptr);
  return &(*at)[index];
}

}  // namespace

absl::Status SetPath(std::string_view assignment, Json& object) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return Wrong(
        fmt::format("'{}' is not path=value, for example spec.trainer.epochs=3", assignment));
  }
  const std::string path(assignment.substr(0, equals));
  RM_ASSIGN_OR_RETURN(const auto steps, schema::ParsePath(path));
  if (steps.front() == Step("status"))
    return Wrong(path + ": the status is the operator's; set fields of metadata and spec");
  RM_ASSIGN_OR_RETURN(const Place place, Resolve(steps));
  RM_ASSIGN_OR_RETURN(Json value, ReadValue(place, path, assignment.substr(equals + 1)));
  Json changed = object;
  Json* at = &changed;
  for (const Step& step : steps) {
    RM_ASSIGN_OR_RETURN(at, Descend(at, step, path));
  }
  *at = std::move(value);  // null counts as absent wherever the schema is checked
  object = std::move(changed);
  return absl::OkStatus();
}

}  // namespace ringmaster::api

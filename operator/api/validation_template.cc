// ValidateTemplate of validation.h. The template is passed on as it is and checked by whoever takes
// the pod; checked here is only what the operator itself must be able to write into.
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/env.h"
#include "common/status.h"
#include "operator/api/validation.h"
#include "proto/schema/check_value.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

// One value of the template and where it is; a value that is absent or null has none.
class Place {
 public:
  Place(const Json* value, std::string path, std::vector<schema::Problem>& problems)
      : value_(value == nullptr || value->is_null() ? nullptr : value),
        path_(std::move(path)),
        problems_(problems) {}

  // The parts of a value of the wrong type are absent.
  Place Field(std::string_view name) const {
    const Json* field = nullptr;
    if (IsObject()) {
      if (const auto found = value_->find(name); found != value_->end()) field = &*found;
    }
    return {field, schema::Join(path_, name), problems_};
  }
  Place Item(std::size_t index) const {
    return {&(*value_)[index], schema::Join(path_, index), problems_};
  }
  std::size_t Items() const { return value_ != nullptr && value_->is_array() ? value_->size() : 0; }

  // None where it is no string.
  const std::string* Text() const {
    return value_ == nullptr ? nullptr : value_->get_ptr<const std::string*>();
  }
  void Report(std::string problem) const { problems_.push_back({path_, std::move(problem)}); }

  bool IsObject() const { return value_ != nullptr && value_->is_object(); }

  const Place& Object() const { return Expect(&Json::is_object, "an object"); }
  const Place& List() const { return Expect(&Json::is_array, "a list"); }
  const Place& String() const { return Expect(&Json::is_string, "a string"); }

  // Where nothing may be absent: in lists and maps, and a variable's name.
  const Place& Required() const {
    if (value_ == nullptr) problems_.push_back({path_, "is missing or null"});
    return *this;
  }

  void ListOfStrings() const {
    for (std::size_t i = 0; i < List().Items(); ++i) Item(i).Required().String();
  }
  void ListOfObjects() const {
    for (std::size_t i = 0; i < List().Items(); ++i) Item(i).Required().Object();
  }
  void MapOfStrings() const {
    if (!Object().IsObject()) return;
    for (const auto& [key, value] : value_->items()) Field(key).Required().String();
  }

 private:
  const Place& Expect(bool (Json::*is)() const noexcept, std::string_view wanted) const {
    if (value_ != nullptr && !(value_->*is)())
      problems_.push_back({path_, schema::WrongType(wanted, *value_)});
    return *this;
  }

  const Json* value_;
  std::string path_;
  std::vector<schema::Problem>& problems_;
};

void CheckMetadata(const Place& metadata) {
  metadata.Object().Field("labels").MapOfStrings();
  metadata.Field("annotations").MapOfStrings();
  metadata.Field("ownerReferences").ListOfObjects();
}

// A value that Ringmaster's own programs would not take would end every worker as it starts. One
// that names another variable is known only there.
void CheckVariable(const Place& variable) {
  if (!variable.IsObject()) return;
  const std::string* const name = variable.Field("name").Required().String().Text();
  const Place value = variable.Field("value");
  const std::string* const text = value.String().Text();
  if (name == nullptr || text == nullptr || text->find("$(") != std::string::npos) return;
  const absl::Status status = env::CheckValue(*name, *text);
  if (!status.ok()) value.Report(Message(status));
}

void CheckContainer(const Place& container) {
  container.Field("name").String();
  container.Field("image").String();
  container.Field("args").ListOfStrings();
  container.Field("volumeMounts").ListOfObjects();
  const Place variables = container.Field("env");
  variables.ListOfObjects();
  for (std::size_t i = 0; i < variables.Items(); ++i) CheckVariable(variables.Item(i));
}

}  // namespace

std::vector<schema::Problem> ValidateTemplate(const Json& pod_template) {
  std::vector<schema::Problem> problems;
  const Place whole(&pod_template, "spec.workers.template", problems);
  CheckMetadata(whole.Object().Field("metadata"));
  const Place spec = whole.Field("spec");
  spec.Object().Field("volumes").ListOfObjects();
  const Place containers = spec.Field("containers");
  containers.ListOfObjects();
  for (std::size_t i = 0; i < containers.Items(); ++i) CheckContainer(containers.Item(i));
  return problems;
}

}  // namespace ringmaster::api

#include "common/settings.h"

#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace ringmaster {
namespace {

using Json = nlohmann::json;

// A message shows at most so much of a wrong value.
constexpr size_t kMaxShown = 60;

std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

bool IsInteger(const Json& value) {
  if (!value.is_number_unsigned()) return value.is_number_integer();
  return value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
}

bool IsIntegers(const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& item : value) {
    if (!IsInteger(item)) return false;
  }
  return true;
}

}  // namespace

struct Settings::State {
  std::string path;
  Json values = Json::object();
  std::set<std::string> asked;
  absl::Status status;

  void Fail(const std::string& name, const std::string& message) {
    if (status.ok())
      status = absl::InvalidArgumentError(fmt::format("{}.{}: {}", path, name, message));
  }

  // The value, where there is one and `is` holds of it.
  template <typename Is>
  const Json* Find(const std::string& name, const char* wanted, const Is& is) {
    asked.insert(name);
    const auto found = values.find(name);
    if (found == values.end() || found->is_null()) return nullptr;
    if (is(*found)) return &*found;
    Fail(name, fmt::format("{} is not {}", Shown(*found), wanted));
    return nullptr;
  }
};

Settings::Settings(std::string path, const std::string& json) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  if (json.empty()) return;
  Json values = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (values.is_object()) {
    state_->values = std::move(values);
  } else {
    state_->status = absl::InvalidArgumentError(state_->path + ": not a JSON object");
  }
}

Settings::~Settings() = default;
Settings::Settings(Settings&& other) noexcept = default;
Settings& Settings::operator=(Settings&& other) noexcept = default;

int64_t Settings::Integer(const std::string& name, int64_t otherwise) {
  const Json* value = state_->Find(name, "a whole number", IsInteger);
  return value == nullptr ? otherwise : value->get<int64_t>();
}

double Settings::Number(const std::string& name, double otherwise) {
  const Json* value =
      state_->Find(name, "a number", [](const Json& json) { return json.is_number(); });
  return value == nullptr ? otherwise : value->get<double>();
}

bool Settings::Flag(const std::string& name, bool otherwise) {
  const Json* value =
      state_->Find(name, "true or false", [](const Json& json) { return json.is_boolean(); });
  return value == nullptr ? otherwise : value->get<bool>();
}

std::string Settings::Text(const std::string& name, const std::string& otherwise) {
  const Json* value =
      state_->Find(name, "a text", [](const Json& json) { return json.is_string(); });
  return value == nullptr ? otherwise : value->get<std::string>();
}

std::vector<int64_t> Settings::Integers(const std::string& name,
                                        const std::vector<int64_t>& otherwise) {
  const Json* value = state_->Find(name, "a list of whole numbers", IsIntegers);
  return value == nullptr ? otherwise : value->get<std::vector<int64_t>>();
}

void Settings::Fail(const std::string& name, const std::string& message) {
  state_->Fail(name, message);
}

const absl::Status& Settings::status() const {
  return state_->status;
}

absl::Status Settings::Finish() const {
  if (!state_->status.ok()) return state_->status;
  for (const auto& [name, value] : state_->values.items()) {
    if (state_->asked.contains(name)) continue;
    const std::string known = state_->asked.empty()
                                  ? "there are none"
                                  : fmt::format("there are {}", fmt::join(state_->asked, ", "));
    return absl::InvalidArgumentError(
        fmt::format("{}.{}: unknown setting; {}", state_->path, name, known));
  }
  return absl::OkStatus();
}

}  // namespace ringmaster

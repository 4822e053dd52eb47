#include "operator/kube/rest/read_json.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace ringmaster::kube::rest {
namespace {

// Builds the value of what the parser tells it, except the members that are to be skipped: their
// tokens are read, and nothing is allocated for them.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Json Take() { return std::move(root_); }

  bool null() override { return Place(nullptr); }
  bool boolean(bool value) override { return Place(value); }
  bool number_integer(std::int64_t value) override { return Place(value); }
  bool number_unsigned(std::uint64_t value) override { return Place(value); }
  bool number_float(double value, const std::string&) override { return Place(value); }
  bool string(std::string& value) override { return Place(std::move(value)); }
  bool binary(Json::binary_t& value) override { return Place(std::move(value)); }

  bool start_object(std::size_t) override { return Begin(Json::object()); }
  bool start_array(std::size_t) override { return Begin(Json::array()); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }

  bool key(std::string& name) override {
    if (skipped_depth_ > 0) return true;
    const Open& object = open_.back();
    skips_next_ = object.is_metadata && name == "managedFields";
    if (skips_next_) return true;
    next_is_metadata_ = name == "metadata";
    member_ = &(*object.value)[std::move(name)];
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    root_ = Json(Json::value_t::discarded);
    return false;
  }

 private:
  // An object or an array whose end has not come yet.
  struct Open {
    Json* value;
    bool is_metadata;
  };

  // Where the next value goes.
  Json& Slot() {
    if (open_.empty()) return root_;
    Json& parent = *open_.back().value;
    return parent.is_array() ? parent.emplace_back(nullptr) : *member_;
  }

  template <typename Value>
  bool Place(Value&& value) {
    if (skipped_depth_ > 0 || std::exchange(skips_next_, false)) return true;
    Slot() = std::forward<Value>(value);
    next_is_metadata_ = false;
    return true;
  }

  bool Begin(Json empty) {
    if (skipped_depth_ > 0 || std::exchange(skips_next_, false)) {
      ++skipped_depth_;
      return true;
    }
    Json& slot = Slot();
    slot = std::move(empty);
    open_.push_back({&slot, std::exchange(next_is_metadata_, false)});
    return true;
  }

  bool End() {
    if (skipped_depth_ > 0) {
      --skipped_depth_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  Json root_;
  std::vector<Open> open_;
  Json* member_ = nullptr;  // of the innermost object: the one whose name came last
  bool next_is_metadata_ = false;
  bool skips_next_ = false;
  std::size_t skipped_depth_ = 0;  // of what is open within the value that is skipped
};

}  // namespace

Json ReadJson(std::string_view text, ManagedFields managed_fields) {
  if (managed_fields == ManagedFields::kRead)
    return Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Builder builder;
  Json::sax_parse(text, &builder);
  return builder.Take();
}

}  // namespace ringmaster::kube::rest

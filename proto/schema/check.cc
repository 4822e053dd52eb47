#include "proto/schema/check.h"

#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "proto/schema/check_value.h"
#include "proto/schema/path.h"
#include "proto/schema/rules.h"
#include "proto/schema/suggest.h"

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

// Where the walk is. It is put into words only where something is wrong, for most objects are
// right, and the words would be most of the work.
class Place {
 public:
  explicit Place(std::string_view root) : name_(root) {}
  Place(const Place& parent, std::string_view name) : parent_(&parent), name_(name) {}
  Place(const Place& parent, std::size_t index) : parent_(&parent), index_(index) {}

  std::string Path() const {
    if (parent_ == nullptr) return std::string(name_);
    return index_ ? Join(parent_->Path(), *index_) : Join(parent_->Path(), name_);
  }

 private:
  const Place* parent_ = nullptr;  // all of them outlive the walk below them
  std::string_view name_;
  std::optional<std::size_t> index_;
};

class Walker {
 public:
  void WalkMessage(const Message& schema, Json& object, const Place& place) {
    if (!ExpectObject(object, place)) return;
    RefuseUnknown(schema, object, place);
    for (const Field& field : schema.fields) WalkField(field, object, place);
    for (const Rule& rule : schema.rules) {
      if (!Evaluate(rule, object, "")) continue;
      problems_.push_back(*Evaluate(rule, object, place.Path()));
    }
    if (schema.resource) WalkName(*schema.resource, object, place);
  }

  std::vector<Problem> TakeProblems() { return std::move(problems_); }

 private:
  void Report(std::string path, std::string message) {
    problems_.push_back({std::move(path), std::move(message)});
  }

  bool ExpectObject(const Json& value, const Place& place) {
    if (value.is_object()) return true;
    Report(place.Path(), WrongType("an object", value));
    return false;
  }

  void RefuseUnknown(const Message& schema, const Json& object, const Place& place) {
    for (const auto& [name, value] : object.items()) {
      if (FindField(schema, name) != nullptr) continue;
      std::vector<std::string> known;
      for (const Field& field : schema.fields) known.push_back(field.name);
      const auto nearest = Nearest(name, known);
      Report(Place(place, name).Path(),
             nearest ? fmt::format("unknown field; did you mean {}?", *nearest) : "unknown field");
    }
  }

  // As the API server does: null is absent, and absent takes the default.
  void WalkField(const Field& field, Json& object, const Place& place) {
    auto found = object.find(field.name);
    if (found != object.end() && found->is_null()) {
      object.erase(found);
      found = object.end();
    }
    if (found == object.end() && !field.default_json.empty()) {
      found = object.emplace(field.name, Json::parse(field.default_json)).first;
    }
    if (found != object.end()) {
      WalkShape(field, *found, Place(place, field.name));
    } else if (field.required) {
      Report(Place(place, field.name).Path(),
             field.description.empty()
                 ? "required, but missing"
                 : fmt::format("required, but missing: {}", FirstSentence(field.description)));
    }
  }

  void WalkShape(const Field& field, Json& value, const Place& place) {
    switch (field.shape) {
      case Shape::kSingle:
        return WalkValue(field, value, place);
      case Shape::kList:
        return WalkList(field, value, place);
      case Shape::kMap:
        return WalkMap(field, value, place);
    }
  }

  void WalkList(const Field& field, Json& list, const Place& place) {
    if (!list.is_array()) return Report(place.Path(), WrongType("a list", list));
    CheckCount(field, list.size(), place);
    for (std::size_t i = 0; i < list.size(); ++i) WalkValue(field, list[i], Place(place, i));
    if (!field.list_map_keys.empty()) RefuseTwins(field, list, place);
  }

  void WalkMap(const Field& field, Json& map, const Place& place) {
    if (!map.is_object()) return Report(place.Path(), WrongType("an object", map));
    CheckCount(field, map.size(), place);
    for (auto& [key, value] : map.items()) WalkValue(field, value, Place(place, key));
  }

  void WalkValue(const Field& field, Json& value, const Place& place) {
    if (field.type == Type::kMessage) return WalkMessage(*field.message, value, place);
    if (CheckValue(field, value, "").empty()) return;
    for (Problem& problem : CheckValue(field, value, place.Path()))
      problems_.push_back(std::move(problem));
  }

  void CheckCount(const Field& field, std::size_t count, const Place& place) {
    if (field.min_items && count < *field.min_items) {
      Report(place.Path(), fmt::format("{} items are fewer than {}", count, *field.min_items));
    }
    if (field.max_items && count > *field.max_items) {
      Report(place.Path(), fmt::format("{} items are more than {}", count, *field.max_items));
    }
  }

  void RefuseTwins(const Field& field, const Json& list, const Place& place) {
    std::set<Json> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_object()) continue;
      Json key = Json::object();
      for (const std::string& name : field.list_map_keys) {
        if (list[i].contains(name)) key[name] = list[i][name];
      }
      if (seen.insert(key).second) continue;
      Report(Place(place, i).Path(), fmt::format("another item has the same {}: {}",
                                                 fmt::join(field.list_map_keys, ", "), key.dump()));
    }
  }

  void WalkName(const Resource& resource, const Json& object, const Place& place) {
    const Json* name = FindPath(object, "metadata.name");
    const Place metadata(place, "metadata");
    const Place where(metadata, "name");
    if (name == nullptr) return Report(where.Path(), "required, but missing: the object's name");
    if (!name->is_string()) return Report(where.Path(), WrongType("a string", *name));
    if (std::string wrong = CheckName(resource, name->get_ref<const std::string&>());
        !wrong.empty()) {
      Report(where.Path(), std::move(wrong));
    }
  }

  std::vector<Problem> problems_;
};

bool IsLetter(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsLabel(std::string_view name) {
  for (const char c : name) {
    if (!IsLetter(c) && !IsDigit(c) && c != '-') return false;
  }
  return !name.empty() && IsLetter(name.front()) && name.back() != '-';
}

void CompareMessage(const Message& schema, const Json& before, const Json& after,
                    const std::string& path, std::vector<Problem>& problems);

void CompareField(const Field& field, const Json& before, const Json& after,
                  const std::string& path, std::vector<Problem>& problems) {
  const auto old_value = before.find(field.name);
  if (old_value == before.end() || old_value->is_null()) return;
  const auto new_value = after.find(field.name);
  const bool gone = new_value == after.end() || new_value->is_null();
  if (field.immutable && (gone || *new_value != *old_value)) {
    problems.push_back({Join(path, field.name), kImmutableDemand});
  } else if (!gone && field.type == Type::kMessage && field.shape == Shape::kSingle) {
    CompareMessage(*field.message, *old_value, *new_value, Join(path, field.name), problems);
  }
}

void CompareMessage(const Message& schema, const Json& before, const Json& after,
                    const std::string& path, std::vector<Problem>& problems) {
  if (!before.is_object() || !after.is_object()) return;
  for (const Field& field : schema.fields) CompareField(field, before, after, path, problems);
}

}  // namespace

std::vector<Problem> CheckAndDefault(const Message& schema, Json& object, std::string_view path) {
  Walker walker;
  walker.WalkMessage(schema, object, Place(path));
  return walker.TakeProblems();
}

std::vector<Problem> CheckUpdate(const Message& schema, const Json& before, const Json& after,
                                 std::string_view path) {
  std::vector<Problem> problems;
  CompareMessage(schema, before, after, std::string(path), problems);
  return problems;
}

std::string CheckName(const Resource& resource, std::string_view name) {
  std::vector<std::string> wrong;
  if (!IsLabel(name)) wrong.push_back(fmt::format("'{}' {}", Shortened(name), kNameDemand));
  if (name.size() > resource.max_name_length)
    wrong.push_back(fmt::format("{} characters: {}", name.size(), NameLengthDemand(resource)));
  return fmt::format("{}", fmt::join(wrong, "; "));
}

std::string FormatProblems(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  for (const Problem& problem : problems) {
    lines.push_back(problem.path.empty() ? problem.message
                                         : fmt::format("{}: {}", problem.path, problem.message));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace ringmaster::schema

#include "proto/schema/path.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster::schema {
namespace {

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

bool IsWord(std::string_view name) {
  for (const char c : name) {
    if (!IsWordCharacter(c)) return false;
  }
  return !name.empty();
}

absl::Status Malformed(std::string_view path, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("'{}' is not a path: {}", path, why));
}

// Takes what stands in brackets from the front of `rest`: [3] or ["name"].
absl::StatusOr<Step> TakeBracket(std::string_view path, std::string_view& rest) {
  const bool quoted = rest.starts_with("[\"");
  const std::size_t begin = quoted ? 2 : 1;
  const std::string_view closing = quoted ? "\"]" : "]";
  const std::size_t end = rest.find(closing, begin);
  if (end == std::string_view::npos) return Malformed(path, "a bracket is not closed");
  const std::string_view inside = rest.substr(begin, end - begin);
  rest.remove_prefix(end + closing.size());
  if (quoted) return Step(std::string(inside));
  std::size_t index = 0;
  const auto [stop, error] = std::from_chars(inside.data(), inside.data() + inside.size(), index);
  if (error != std::errc() || stop != inside.data() + inside.size()) {
    return Malformed(path, fmt::format("[{}] is not the place of an item", inside));
  }
  return Step(index);
}

Step TakeWord(std::string_view& rest) {
  std::size_t length = 0;
  while (length < rest.size() && IsWordCharacter(rest[length])) ++length;
  Step step = std::string(rest.substr(0, length));
  rest.remove_prefix(length);
  return step;
}

}  // namespace

std::string Join(std::string_view path, std::string_view name) {
  if (!IsWord(name)) return fmt::format("{}[\"{}\"]", path, name);
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string Join(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

absl::StatusOr<std::vector<Step>> ParsePath(std::string_view path) {
  std::vector<Step> steps;
  std::string_view rest = path;
  bool after_dot = true;
  while (!rest.empty()) {
    if (rest.front() == '[') {
      auto step = TakeBracket(path, rest);
      if (!step.ok()) return step.status();
      steps.push_back(*std::move(step));
    } else if (after_dot && IsWordCharacter(rest.front())) {
      steps.push_back(TakeWord(rest));
    } else {
      return Malformed(path, fmt::format("'{}' is not expected", rest.front()));
    }
    after_dot = rest.starts_with('.');
    if (after_dot) rest.remove_prefix(1);
  }
  if (after_dot) return Malformed(path, "a name is missing");
  return steps;
}

const nlohmann::json* FindPath(const nlohmann::json& object, std::string_view path) {
  const auto steps = ParsePath(path);
  if (!steps.ok()) return nullptr;
  const nlohmann::json* value = &object;
  for (const Step& step : *steps) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      if (!value->is_object()) return nullptr;
      const auto found = value->find(*name);
      if (found == value->end()) return nullptr;
      value = &*found;
    } else {
      const std::size_t index = std::get<std::size_t>(step);
      if (!value->is_array() || index >= value->size()) return nullptr;
      value = &(*value)[index];
    }
  }
  return value->is_null() ? nullptr : value;
}

}  // namespace ringmaster::schema

#include "proto/schema/check_value.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "proto/schema/path.h"
#include "proto/schema/pattern.h"
#include "proto/schema/suggest.h"

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;
using Problems = std::vector<Problem>;

constexpr std::size_t kLongestQuote = 60;
// Beyond this a double no longer holds every integer.
constexpr double kExactIntegers = 9007199254740992.0;

std::string Quote(const Json& value) {
  // Text that is not UTF-8 is shown with replacement characters instead of throwing.
  return Shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string_view TypeName(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_float:
      return "a fractional number";
    default:
      return "an integer";
  }
}

bool IsWhole(const Json& value) {
  return value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>();
}

bool Fits(const Json& value, Type type) {
  if (value.is_number_float()) return false;  // whole, but larger than a double knows exactly
  constexpr auto kMax64 = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMax64) return false;
  if (type == Type::kInt64) return true;
  const auto number = value.get<std::int64_t>();
  return number >= std::numeric_limits<std::int32_t>::min() &&
         number <= std::numeric_limits<std::int32_t>::max();
}

std::optional<std::string> CheckBounds(const Field& field, const Json& value) {
  const double number = value.get<double>();
  if (field.minimum && field.exclusive_minimum && number <= *field.minimum) {
    return fmt::format("{} is not more than {}", value.dump(), *field.minimum);
  }
  if (field.minimum && number < *field.minimum) {
    return fmt::format("{} is less than {}", value.dump(), *field.minimum);
  }
  if (field.maximum && number > *field.maximum) {
    return fmt::format("{} is more than {}", value.dump(), *field.maximum);
  }
  return std::nullopt;
}

std::optional<std::string> CheckInteger(const Field& field, Json& value) {
  const bool whole = IsWhole(value);
  if (whole && std::abs(value.get<double>()) <= kExactIntegers)
    value = static_cast<std::int64_t>(value.get<double>());
  if (!value.is_number_integer() && !whole) return WrongType("an integer", value);
  if (!Fits(value, field.type)) {
    return fmt::format("{} does not fit into {} bits", value.dump(),
                       field.type == Type::kInt32 ? 32 : 64);
  }
  return CheckBounds(field, value);
}

std::optional<std::string> CheckDouble(const Field& field, const Json& value) {
  if (!value.is_number()) return WrongType("a number", value);
  if (!std::isfinite(value.get<double>())) return "must be finite";
  return CheckBounds(field, value);
}

std::size_t CountCharacters(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++count;
  }
  return count;
}

std::string OneOf(const Json& value, const std::vector<std::string>& allowed) {
  const auto nearest = Nearest(value.get_ref<const std::string&>(), allowed);
  const std::string hint = nearest ? fmt::format("; did you mean {}?", *nearest) : "";
  return fmt::format("{} is not one of {}{}", Quote(value), fmt::join(allowed, ", "), hint);
}

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  for (const std::string& item : list) {
    if (item == text) return true;
  }
  return false;
}

std::optional<std::string> CheckString(const Field& field, const Json& value) {
  if (!value.is_string()) return WrongType("a string", value);
  const auto& text = value.get_ref<const std::string&>();
  const std::size_t length = CountCharacters(text);
  if (field.min_length && length < *field.min_length) {
    return text.empty() ? std::string("must not be empty")
                        : fmt::format("{} characters are fewer than {}", length, *field.min_length);
  }
  if (field.max_length && length > *field.max_length) {
    return fmt::format("{} characters are more than {}", length, *field.max_length);
  }
  if (!field.allowed.empty() && !Contains(field.allowed, text)) return OneOf(value, field.allowed);
  if (!field.pattern.empty() && !MatchesWhole(text, field.pattern)) {
    return fmt::format("{} must be {}", Quote(value), field.pattern_help);
  }
  return std::nullopt;
}

std::optional<std::string> CheckTimestamp(const Json& value) {
  if (!value.is_string()) return WrongType("a time such as 2026-01-31T12:00:00Z", value);
  if (ParseTime(value.get_ref<const std::string&>()).ok()) return std::nullopt;
  return fmt::format("{} is not a time such as 2026-01-31T12:00:00Z", Quote(value));
}

std::optional<std::string> CheckEnum(const Field& field, const Json& value) {
  const std::vector<EnumValue>& values = field.enumeration->values;
  if (value.is_string() && std::ranges::find(values, value.get_ref<const std::string&>(),
                                             &EnumValue::name) != values.end()) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const EnumValue& known : values) names.push_back(known.name);
  if (!value.is_string()) return WrongType(fmt::format("one of {}", fmt::join(names, ", ")), value);
  return OneOf(value, names);
}

// Follows one raw path as far as the object goes, reporting the first value of another type than
// the path supposes.
void CheckRawPath(const RawField& raw, const Json& object, std::string_view path,
                  Problems& problems) {
  const Json* value = &object;
  std::string where(path);
  const auto steps = ParsePath(raw.path);  // the generator has checked that it is one
  for (const Step& step : *steps) {
    if (const auto* name = std::get_if<std::string>(&step)) {
      if (!value->is_object()) return problems.push_back({where, WrongType("an object", *value)});
      const auto found = value->find(*name);
      if (found == value->end() || found->is_null()) return;
      value = &*found;
      where = Join(where, *name);
    } else {
      if (!value->is_array()) return problems.push_back({where, WrongType("a list", *value)});
      const std::size_t index = std::get<std::size_t>(step);
      if (index >= value->size()) return;
      value = &(*value)[index];
      where = Join(where, index);
    }
  }
  if (!value->is_array()) return problems.push_back({where, WrongType("a list", *value)});
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (!(*value)[i].is_string())
      problems.push_back({Join(where, i), WrongType("a string", (*value)[i])});
  }
}

Problems CheckRaw(const Field& field, const Json& value, std::string_view path) {
  Problems problems;
  if (!value.is_object()) return {{std::string(path), WrongType("an object", value)}};
  for (const RawField& raw : field.raw_fields) CheckRawPath(raw, value, path, problems);
  return problems;
}

std::optional<std::string> CheckScalar(const Field& field, Json& value) {
  switch (field.type) {
    case Type::kBool:
      if (value.is_boolean()) return std::nullopt;
      return WrongType("true or false", value);
    case Type::kInt32:
    case Type::kInt64:
      return CheckInteger(field, value);
    case Type::kDouble:
      return CheckDouble(field, value);
    case Type::kString:
      return CheckString(field, value);
    case Type::kTimestamp:
      return CheckTimestamp(value);
    case Type::kEnum:
      return CheckEnum(field, value);
    case Type::kMessage:
    case Type::kRaw:
      break;
  }
  return std::nullopt;
}

}  // namespace

Problems CheckValue(const Field& field, Json& value, std::string_view path) {
  if (field.type == Type::kRaw) return CheckRaw(field, value, path);
  if (auto wrong = CheckScalar(field, value)) return {{std::string(path), *std::move(wrong)}};
  return {};
}

std::string WrongType(std::string_view wanted, const Json& value) {
  const bool show = value.is_primitive() && !value.is_null();
  return fmt::format("must be {}, not {}{}", wanted, TypeName(value),
                     show ? fmt::format(" ({})", Quote(value)) : "");
}

std::string Shortened(std::string_view text) {
  if (text.size() <= kLongestQuote) return std::string(text);
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;  // never cut a character in two
  return std::string(text.substr(0, end)) + "...";
}

std::string FirstSentence(const std::string& text) {
  const std::size_t end = text.find(". ");
  std::string sentence = text.substr(0, end);
  if (end == std::string::npos && sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

}  // namespace ringmaster::schema

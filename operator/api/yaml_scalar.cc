// ResolvePlainScalar of yaml.h: the table and the order of attempts of goyaml.v2's resolve.go,
// which kubectl uses.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

#include "operator/api/yaml.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

template <std::size_t N>
bool IsOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 5> kNulls = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 11> kTrues = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                     "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalses = {"n",     "N",     "no",  "No",  "NO", "false",
                                                      "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 12> kNotFinite = {".nan",  ".NaN",  ".NAN",  ".inf",
                                                         ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                         "+.INF", "-.inf", "-.Inf", "-.INF"};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// 0x, 0b, 0o and a leading 0 name the base, as strconv.ParseInt(text, 0, 64) reads them. Takes the
// prefix.
int TakeBase(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char mark = digits[1];
  const int base = (mark == 'x' || mark == 'X') ? 16 : (mark == 'b' || mark == 'B') ? 2 : 8;
  digits.remove_prefix(base != 8 || mark == 'o' || mark == 'O' ? 2 : 1);
  return base;
}

std::optional<Json> ReadInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int base = TakeBase(text);
  std::uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr std::uint64_t kMinMagnitude = std::uint64_t{1} << 63;
  if (!negative)
    return magnitude < kMinMagnitude ? Json(static_cast<std::int64_t>(magnitude)) : Json(magnitude);
  if (magnitude > kMinMagnitude) return std::nullopt;
  return Json(static_cast<std::int64_t>(0 - magnitude));
}

std::size_t SkipDigits(std::string_view text, std::size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool LooksLikeFloat(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t whole = SkipDigits(text, 0);
  std::size_t at = whole;
  if (at < text.size() && text[at] == '.') {
    at = SkipDigits(text, at + 1);
    if (whole == 0 && at == 1) return false;
  } else if (whole == 0) {
    return false;
  }
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const std::size_t end = SkipDigits(text, at);
  return end > at && end == text.size();
}

std::optional<double> ReadFloat(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return HUGE_VAL;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Json> ResolvePlainScalar(std::string_view text) {
  if (IsOneOf(text, kNulls)) return Json(nullptr);
  if (IsOneOf(text, kTrues)) return Json(true);
  if (IsOneOf(text, kFalses)) return Json(false);
  if (IsOneOf(text, kNotFinite)) return std::nullopt;
  const bool number = IsDigit(text[0]) || text[0] == '-' || text[0] == '+' || text[0] == '.';
  if (!number) return Json(std::string(text));
  std::string plain;
  for (const char c : text) {
    if (c != '_' || text[0] == '.') plain += c;
  }
  if (auto integer = ReadInteger(plain)) return integer;
  if (!LooksLikeFloat(plain)) return Json(std::string(text));
  const auto value = ReadFloat(plain);
  if (!value) return Json(std::string(text));
  return std::isfinite(*value) ? std::optional<Json>(*value) : std::nullopt;
}

}  // namespace ringmaster::api

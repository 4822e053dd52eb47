#include "proto/schema/yaml_writer.h"

#include <cctype>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

bool IsReserved(const std::string& text) {
  static const std::set<std::string> kWords = {"y",   "n",    "yes",   "no",  "on",
                                               "off", "true", "false", "null"};
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kWords.contains(lower);
}

// Text that begins with a letter is no number; without ": ", " #" and the like it cannot be taken
// for structure.
bool IsPlain(const std::string& text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0 ||
      IsReserved(text))
    return false;
  if (text.back() == ':' || text.back() == ' ') return false;
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    const bool safe = letter >= 0x80 || std::isalnum(letter) != 0 ||
                      std::string_view(" _-./,;()'=<>+*|&$?!^").find(c) != std::string_view::npos;
    if (!safe && c != ':') return false;
  }
  return text.find(": ") == std::string::npos;
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get<std::string>())) return value.get<std::string>();
  return value.dump();
}

void Write(const Json& value, std::size_t indent, std::string& out);

// A value behind "key:" or "-": on the same line when it is a scalar or empty.
void WriteBehind(const Json& value, std::size_t indent, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    out += " " + Scalar(value) + "\n";
  } else {
    out += "\n";
    Write(value, indent, out);
  }
}

void WriteItem(const Json& item, std::size_t indent, std::string& out) {
  out += std::string(indent, ' ') + "-";
  if (!item.is_object() || item.empty()) return WriteBehind(item, indent + 2, out);
  std::string block;
  Write(item, indent + 2, block);
  out += block.substr(indent + 1);  // the first key stands behind the dash
}

void Write(const Json& value, std::size_t indent, std::string& out) {
  if (value.is_array()) {
    for (const Json& item : value) WriteItem(item, indent, out);
    return;
  }
  for (const auto& [key, item] : value.items()) {
    out += std::string(indent, ' ') + Scalar(key) + ":";
    // Lists stand at their key's own column, as kubectl writes them.
    WriteBehind(item, item.is_array() ? indent : indent + 2, out);
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  std::string out;
  Write(value, 0, out);
  return out;
}

}  // namespace ringmaster::schema

// The one file that knows yaml-cpp. The parser's events build the JSON directly, so that the style
// of scalars, the line of each key and the number of values that aliases add are seen as they come.
#include "operator/api/yaml.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

int LineOf(const YAML::Mark& mark) {
  return mark.line + 1;
}

std::size_t CountValues(const Json& value) {
  std::size_t count = 1;
  if (value.is_structured()) {
    for (const Json& item : value) count += CountValues(item);
  }
  return count;
}

std::size_t Depth(const Json& value) {
  std::size_t deepest = 0;
  if (value.is_structured()) {
    for (const Json& item : value) deepest = std::max(deepest, Depth(item));
    ++deepest;
  }
  return deepest;
}

// A list or map that is being read.
struct Open {
  Json value;
  std::string path;
  YAML::Mark mark;
  YAML::anchor_t anchor = 0;
  std::optional<std::string> key;  // of a map: read, its value not yet
  int key_line = 0;
  std::map<std::string, int> key_lines;
  std::vector<Json> merges;  // the values of "<<"
};

// Builds the value of one document. Throws YAML::ParserException at what makes the rest
// meaningless.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(YamlDocument& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Scalar(mark, anchor, nullptr, "~", true);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw YAML::ParserException(mark, "the alias stands inside what it refers to");
    Spend(mark, CountValues(found->second));
    if (open_.size() + Depth(found->second) > kMaxYamlDepth) TooDeep(mark);
    Value(mark, found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    if (tag == "?" || tag.empty()) return Plain(mark, anchor, text);
    if (tag == "!" || tag == std::string(kStandard) + "str")
      return Scalar(mark, anchor, text, text, false);
    const auto value = ResolvePlainScalar(text);
    const std::string name = tag.starts_with(kStandard) ? tag.substr(kStandard.size()) : "";
    const bool fits =
        value &&
        ((name == "int" && value->is_number_integer()) || (name == "float" && value->is_number()) ||
         (name == "bool" && value->is_boolean()) || (name == "null" && value->is_null()));
    if (!fits) Report(mark, fmt::format("'{}' cannot be read as {}", text, tag));
    Scalar(mark, anchor, fits ? *value : Json(text), text, false);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(mark, anchor, Json::array());
  }
  void OnSequenceEnd() override { End(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(mark, anchor, Json::object());
  }
  void OnMapEnd() override {
    Open& map = open_.back();
    for (const Json& merged : map.merges) {
      for (const auto& [key, value] : merged.items()) {
        if (!map.value.contains(key)) map.value[key] = value;
      }
    }
    End();
  }

 private:
  [[noreturn]] static void TooDeep(const YAML::Mark& mark) {
    throw YAML::ParserException(mark, fmt::format("nested deeper than {} levels", kMaxYamlDepth));
  }

  void Report(const YAML::Mark& mark, std::string message) {
    document_.errors.push_back(
        {LineOf(mark), open_.empty() ? "" : ChildPath(), std::move(message)});
  }

  void Spend(const YAML::Mark& mark, std::size_t values) {
    values_ += values;
    if (values_ <= kMaxYamlValues) return;
    throw YAML::ParserException(
        mark,
        fmt::format("the document has more than {} values, aliases expanded", kMaxYamlValues));
  }

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().key;
  }

  // The path of the value that comes next.
  std::string ChildPath() const {
    if (open_.empty()) return "";
    const Open& around = open_.back();
    if (around.value.is_array()) return schema::Join(around.path, around.value.size());
    return around.key ? schema::Join(around.path, *around.key) : around.path;
  }

  void Plain(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& text) {
    const auto value = ResolvePlainScalar(text);
    if (!value) Report(mark, fmt::format("{} is not a finite number", text));
    Scalar(mark, anchor, value.value_or(nullptr), text, true);
  }

  void Scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Json value, const std::string& text,
              bool plain) {
    Spend(mark, 1);
    if (anchor != 0) anchors_[anchor] = value;
    if (ExpectsKey()) return Key(mark, value, text, plain);
    Value(mark, std::move(value));
  }

  // As sigs.k8s.io/yaml turns keys into strings: booleans and integers by their value.
  void Key(const YAML::Mark& mark, const Json& value, const std::string& text, bool plain) {
    Open& map = open_.back();
    if (value.is_null()) Report(mark, "a key is missing before ':'");
    const bool spelled = plain && (value.is_boolean() || value.is_number_integer());
    map.key = spelled ? value.dump() : text;
    map.key_line = LineOf(mark);
    const bool merge = plain && text == "<<";
    if (merge) return;
    const auto [first, added] = map.key_lines.emplace(*map.key, map.key_line);
    if (!added)
      Report(mark, fmt::format("the key is there twice; first on line {}", first->second));
    document_.lines.Set(ChildPath(), map.key_line);
  }

  void Begin(const YAML::Mark& mark, YAML::anchor_t anchor, Json empty) {
    Spend(mark, 1);
    if (open_.size() >= kMaxYamlDepth) TooDeep(mark);
    std::string path = ChildPath();
    if (open_.empty() || open_.back().value.is_array()) document_.lines.Set(path, LineOf(mark));
    open_.push_back({std::move(empty), std::move(path), mark, anchor, std::nullopt, 0, {}, {}});
  }

  void End() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.anchor != 0) anchors_[done.anchor] = done.value;
    if (!ExpectsKey()) return Value(done.mark, std::move(done.value));
    Report(done.mark, "a key must be a scalar");
    open_.back().key = "?";
  }

  void Value(const YAML::Mark& mark, Json value) {
    if (open_.empty()) {
      document_.value = std::move(value);
      return;
    }
    Open& around = open_.back();
    if (around.value.is_array()) {
      document_.lines.Set(ChildPath(), LineOf(mark));
      around.value.push_back(std::move(value));
    } else if (!around.key) {
      if (value.is_structured()) Report(mark, "a key must be a scalar");
      Key(mark, value, value.is_string() ? value.get<std::string>() : value.dump(), false);
    } else if (*around.key == "<<" && !around.key_lines.contains("<<")) {
      Merge(mark, std::move(value));
      around.key.reset();
    } else {
      around.value[*around.key] = std::move(value);
      around.key.reset();
    }
  }

  void Merge(const YAML::Mark& mark, Json value) {
    if (!value.is_array()) value = Json::array({std::move(value)});
    for (Json& source : value) {
      if (!source.is_object()) {
        Report(mark, "<< merges maps only");
      } else {
        open_.back().merges.push_back(std::move(source));
      }
    }
  }

  YamlDocument& document_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Json> anchors_;
  std::size_t values_ = 0;
};

int LineAt(std::string_view text, std::size_t at) {
  int line = 1;
  for (const char c : text.substr(0, at)) line += c == '\n' ? 1 : 0;
  return line;
}

// yaml-cpp takes 0x04 for the end of the text and passes on bytes that are not UTF-8, so both are
// refused before it.
std::optional<Diagnostic> CheckText(std::string_view text) {
  if (text.size() > kMaxYamlBytes) {
    return Diagnostic{0, "", fmt::format("{} bytes are more than {}", text.size(), kMaxYamlBytes)};
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool allowed = byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r';
    if (!allowed || byte == 0x7F)
      return Diagnostic{LineAt(text, i), "", fmt::format("control character 0x{:02x}", byte)};
  }
  try {
    (void)Json(std::string(text)).dump();
  } catch (const Json::exception&) {
    return Diagnostic{0, "", "the text is not UTF-8"};
  }
  return std::nullopt;
}

void RefuseMoreDocuments(YAML::Parser& parser, YamlDocument& document) {
  YamlDocument next;
  Builder builder(next);
  while (parser.HandleNextDocument(builder)) {
    if (next.value.is_null() && next.errors.empty()) continue;  // nothing behind a last "---"
    document.errors.push_back(
        {next.lines.LineOf(""), "", "a second document starts here; one file holds one object"});
    return;
  }
}

}  // namespace

YamlDocument ParseYaml(std::string_view text) {
  YamlDocument document;
  if (auto wrong = CheckText(text)) {
    document.errors.push_back(*std::move(wrong));
    return document;
  }
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    Builder builder(document);
    parser.HandleNextDocument(builder);
    RefuseMoreDocuments(parser, document);
  } catch (const YAML::Exception& error) {
    document.value = nullptr;
    document.errors.push_back({LineOf(error.mark), "", error.msg});
  }
  return document;
}

}  // namespace ringmaster::api

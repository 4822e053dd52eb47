#include "operator/kube/rest/read_json.h"

#include <algorithm>
#include <cstddef>

#include <nlohmann/json.hpp>

namespace ringmaster::kube::rest {
namespace {

// Copies a text without the members that are not to be read.
class Cutter {
 public:
  Cutter(std::string_view text, const Reading& reading) : text_(text), reading_(reading) {}

  // Nothing when brackets or quotes do not match.
  std::optional<std::string> Cut() {
    kept_.reserve(text_.size() / 2);
    SkipSpace();
    const bool whole = Next() == '{' ? CutObject(Part::kRoot) : Copy();
    if (!whole) return std::nullopt;
    kept_.append(text_.substr(at_));  // which the parser refuses, if it is more than space
    return std::move(kept_);
  }

 private:
  // What an object is, and so what is cut from it.
  enum class Part { kRoot, kItem, kMetadata, kSpec };
  enum class Fate { kCopy, kCut, kEnter };

  Fate FateOf(Part part, std::string_view name) const {
    const bool skips = reading_.managed_fields == ManagedFields::kSkip;
    switch (part) {
      case Part::kMetadata:
        return skips && name == "managedFields" ? Fate::kCut : Fate::kCopy;
      case Part::kSpec:
        return std::find(reading_.spec->begin(), reading_.spec->end(), name) == reading_.spec->end()
                   ? Fate::kCut
                   : Fate::kCopy;
      case Part::kRoot:
        if (name == "items" || name == "object") return Fate::kEnter;
        [[fallthrough]];
      case Part::kItem:
        if (name == "metadata" && skips) return Fate::kEnter;
        return name == "spec" && reading_.spec ? Fate::kEnter : Fate::kCopy;
    }
    return Fate::kCopy;
  }

  static Part PartOf(std::string_view name) {
    if (name == "metadata") return Part::kMetadata;
    return name == "spec" ? Part::kSpec : Part::kItem;
  }

  bool CutObject(Part part) {
    bool first = true;
    return Each('}', [&] {
      const std::size_t begin = at_;
      if (Next() != '"' || !SkipString()) return false;
      const std::string_view name = text_.substr(begin + 1, at_ - begin - 2);
      SkipSpace();
      if (Next() != ':') return false;
      ++at_;
      SkipSpace();
      const Fate fate = FateOf(part, name);
      if (fate == Fate::kCut) return SkipValue();
      if (!first) kept_ += ',';
      first = false;
      kept_.append(text_.substr(begin, name.size() + 2)) += ':';
      if (fate == Fate::kEnter && Next() == '{') return CutObject(PartOf(name));
      return fate == Fate::kEnter && Next() == '[' && name == "items" ? CutItems() : Copy();
    });
  }

  bool CutItems() {
    bool first = true;
    return Each(']', [&] {
      if (!first) kept_ += ',';
      first = false;
      return Next() == '{' ? CutObject(Part::kItem) : Copy();
    });
  }

  // Goes through what stands between the bracket here and its closing one, between commas.
  template <typename One>
  bool Each(char closing, const One& one) {
    kept_ += text_[at_++];
    SkipSpace();
    if (Next() != closing) {
      while (true) {
        if (!one()) return false;
        SkipSpace();
        if (Next() != ',') break;
        ++at_;
        SkipSpace();
      }
      if (Next() != closing) return false;
    }
    ++at_;
    kept_ += closing;
    return true;
  }

  bool Copy() {
    const std::size_t begin = at_;
    if (!SkipValue()) return false;
    kept_.append(text_.substr(begin, at_ - begin));
    return true;
  }

  bool SkipValue() {
    const std::size_t begin = at_;
    if (Next() == '"') return SkipString();
    if (Next() == '{' || Next() == '[') return SkipBrackets();
    at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    return at_ > begin;
  }

  bool SkipBrackets() {
    std::string open;  // the closing ones that are to come
    do {
      switch (Next()) {
        case '{':
          open += '}';
          break;
        case '[':
          open += ']';
          break;
        case '}':
        case ']':
          if (open.back() != Next()) return false;
          open.pop_back();
          break;
        case '"':
          if (!SkipString()) return false;
          continue;
        default:
          break;
      }
      ++at_;
    } while (!open.empty() && at_ < text_.size());
    return open.empty();
  }

  bool SkipString() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }

  void SkipSpace() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  const std::string_view text_;
  const Reading& reading_;
  std::size_t at_ = 0;
  std::string kept_;
};

}  // namespace

Json ReadJson(std::string_view text, const Reading& reading) {
  const auto parse = [](std::string_view part) {
    return Json::parse(part, nullptr, /*allow_exceptions=*/false);
  };
  if (reading.managed_fields == ManagedFields::kRead && !reading.spec) return parse(text);
  const std::optional<std::string> kept = Cutter(text, reading).Cut();
  return kept ? parse(*kept) : Json(Json::value_t::discarded);
}

}  // namespace ringmaster::kube::rest

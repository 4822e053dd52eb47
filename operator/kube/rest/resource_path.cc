#include "operator/kube/rest/resource_path.h"

#include <fmt/format.h>

#include "common/status.h"
#include "operator/kube/errors.h"

namespace ringmaster::kube::rest {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string Escape(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c)) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

// What the server's path validation refuses in a segment.
absl::Status CheckSegment(std::string_view what, std::string_view text) {
  if (text.empty()) return BadRequest(fmt::format("{} is empty", what));
  if (text == "." || text == ".." || text.find_first_of("/%") != std::string_view::npos) {
    return BadRequest(fmt::format("{} \"{}\" may not be part of a path", what, text));
  }
  return absl::OkStatus();
}

}  // namespace

std::string CollectionPath(const ResourceType& type, std::string_view ns) {
  std::string path = type.group.empty() ? fmt::format("/api/{}", type.version)
                                        : fmt::format("/apis/{}/{}", type.group, type.version);
  if (type.namespaced && !ns.empty()) path += fmt::format("/namespaces/{}", Escape(ns));
  return path + "/" + std::string(type.plural);
}

absl::StatusOr<std::string> ObjectPath(const ResourceType& type, const ObjectKey& key) {
  if (type.namespaced) RM_RETURN_IF_ERROR(CheckSegment("metadata.namespace", key.ns));
  RM_RETURN_IF_ERROR(CheckSegment("metadata.name", key.name));
  return CollectionPath(type, key.ns) + "/" + Escape(key.name);
}

Query& Query::Add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  text_ += text_.empty() ? '?' : '&';
  text_ += Escape(name);
  text_ += '=';
  text_ += Escape(value);
  return *this;
}

}  // namespace ringmaster::kube::rest

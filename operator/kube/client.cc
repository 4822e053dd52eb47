#include "operator/kube/client.h"

namespace ringmaster::kube {

std::string_view ToString(WatchEventType type) {
  switch (type) {
    case WatchEventType::kAdded:
      return "ADDED";
    case WatchEventType::kModified:
      return "MODIFIED";
    case WatchEventType::kDeleted:
      return "DELETED";
    case WatchEventType::kBookmark:
      break;
  }
  return "BOOKMARK";
}

}  // namespace ringmaster::kube

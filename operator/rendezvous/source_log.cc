#include "operator/rendezvous/source_log.h"

#include <fmt/format.h>

#include "common/log.h"

namespace ringmaster::rendezvous {

bool SourceLog::Refused(std::string_view kind, const std::string& source,
                        const std::string& detail) {
  {
    std::lock_guard lock(mutex_);
    const bool full = seen_.size() >= kMaxSources;
    if (!seen_.insert(fmt::format("{} {}", kind, full ? "" : source)).second) return false;
  }
  log::Warning("refused on the rendezvous port; told once for each source",
               {{"what", kind}, {"source", source}, {"detail", detail}});
  return true;
}

std::string HostOf(std::string_view peer) {
  for (const std::string_view scheme : {"ipv4:", "ipv6:"}) {
    if (peer.starts_with(scheme)) peer.remove_prefix(scheme.size());
  }
  return std::string(peer.substr(0, peer.rfind(':')));
}

}  // namespace ringmaster::rendezvous

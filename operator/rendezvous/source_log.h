// Who was refused, logged once each: a scanner that comes every second must not fill the log, and
// one line must stay to be found.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_SOURCE_LOG_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_SOURCE_LOG_H_

#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace ringmaster::rendezvous {

// Thread-safe.
class SourceLog {
 public:
  // Writes a warning unless this source was refused before for a reason of this kind. `kind` is
  // constant text; `source` an address without its port. Returns whether a line was written. After
  // kMaxSources different ones only every new kind is told.
  bool Refused(std::string_view kind, const std::string& source, const std::string& detail);

 private:
  static constexpr size_t kMaxSources = 1024;

  std::mutex mutex_;
  std::set<std::string> seen_;
};

// "ipv4:127.0.0.1:4242" and "127.0.0.1:4242" become "127.0.0.1".
std::string HostOf(std::string_view peer);

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_SOURCE_LOG_H_

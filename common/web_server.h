// The small web server of our programs: a few pages that machines ask for, such as /metrics,
// /healthz and /readyz.
//
//   RM_ASSIGN_OR_RETURN(auto server, WebServer::Start(":7470", {{"/readyz", HealthPage(check)}}));
#ifndef RINGMASTER_COMMON_WEB_SERVER_H_
#define RINGMASTER_COMMON_WEB_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ringmaster {

struct WebAnswer {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// Answers a GET, and a HEAD with all but the body. Called on the server's threads; must be quick
// and thread-safe, and not throw.
using WebPage = std::function<WebAnswer()>;

// 200 "ok" while the check says OK, else 503 with its message: what a kubelet's probes ask for.
WebPage HealthPage(std::function<absl::Status()> check);

class WebServer {
 public:
  // Serves each page at its path, and 404 elsewhere. `address` is "host:port", the host numeric,
  // ":port" for all addresses of both families; port 0 takes a free one. kInvalidArgument for
  // an address that is none, kUnavailable, with the address, when it cannot be listened at.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const std::string& address,
                                                          std::map<std::string, WebPage> pages);
  // Returns when no page is asked any more.
  virtual ~WebServer() = default;
  virtual int port() const = 0;
};

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_WEB_SERVER_H_

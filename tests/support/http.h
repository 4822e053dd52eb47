// What a scraper or a probe does: one GET over HTTP/1.0 on the loopback.
#ifndef RINGMASTER_TESTS_SUPPORT_HTTP_H_
#define RINGMASTER_TESTS_SUPPORT_HTTP_H_

#include <string>

#include "common/file.h"

namespace ringmaster::testing {

// A connection on which nothing has been said yet; invalid when nobody listens. The host is
// numeric.
UniqueFd ConnectTo(int port, const std::string& host = "127.0.0.1");

// All that comes back after `text`; empty when nobody answers within seconds.
std::string HttpSay(const UniqueFd& connection, const std::string& text);

// The whole answer, status line and headers included; empty when nobody answers within seconds.
std::string HttpGet(int port, const std::string& path, const std::string& host = "127.0.0.1");

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_HTTP_H_

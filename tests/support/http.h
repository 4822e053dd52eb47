// What a scraper or a probe does: one GET over HTTP/1.0 on the loopback.
#ifndef RINGMASTER_TESTS_SUPPORT_HTTP_H_
#define RINGMASTER_TESTS_SUPPORT_HTTP_H_

#include <string>

#include "common/file.h"

namespace ringmaster::testing {

// A connection on which nothing has been said yet; invalid when nobody listens.
UniqueFd ConnectTo(int port);

// The whole answer, status line and headers included; empty when nobody answers within seconds.
std::string HttpGet(int port, const std::string& path);

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_HTTP_H_

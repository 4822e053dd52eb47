// An HTTP/1.1 server on loopback that behaves as badly as a test wants: it answers with any bytes,
// stops in the middle, resets, stalls. One thread for each connection; requests are noted.
//
//   ScriptedHttpServer server;
//   server.Script({Answer(500, ""), Answer(200, "{}")});   // for the first two requests
//   server.Otherwise([](ServedRequest& request) { request.Send("HTTP/1.1 200 OK\r\nContent-Le");
//   });
#ifndef RINGMASTER_TESTS_SUPPORT_SCRIPTED_HTTP_SERVER_H_
#define RINGMASTER_TESTS_SUPPORT_SCRIPTED_HTTP_SERVER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/file.h"

namespace ringmaster::testing {

struct HttpRequestSeen {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int connection = 0;  // 1 for the first that was made
};

// A request, and the connection to answer it on. Without a call of Close or Reset the connection
// stays open for the next request.
class ServedRequest {
 public:
  ServedRequest(int fd, HttpRequestSeen seen) : fd_(fd), seen_(std::move(seen)) {}

  const HttpRequestSeen& seen() const { return seen_; }
  // False when the client has closed the connection, or the server is ending.
  bool Send(std::string_view bytes);
  void Close();  // after what was sent
  void Reset();  // RST
  // Waits for the client to close; false when it has not within `patience`.
  bool AwaitClosed(std::chrono::milliseconds patience);
  bool closed() const { return closed_; }

 private:
  const int fd_;
  const HttpRequestSeen seen_;
  bool closed_ = false;
};

using HttpScript = std::function<void(ServedRequest&)>;

// A whole answer with its Content-Length; `headers` are whole lines, each with its "\r\n".
HttpScript Answer(int code, std::string body, std::string headers = "");

class ScriptedHttpServer {
 public:
  // `address` is 127.0.0.1 or ::1. Throws when it cannot listen: a test cannot go on then.
  explicit ScriptedHttpServer(const std::string& address = "127.0.0.1");
  ~ScriptedHttpServer();

  void Script(std::vector<HttpScript> scripts);  // one for each request, in their order
  void Otherwise(HttpScript script);             // for all that follow; 404 unless told

  int port() const { return port_; }
  std::string url() const;
  std::vector<HttpRequestSeen> requests() const;
  // Waits until so many have come, `patience` at most; how many there are. A client may give up on
  // a request before the server has read it.
  std::size_t AwaitRequests(std::size_t count, std::chrono::milliseconds patience) const;

 private:
  void Accept();
  void Serve(int fd, int connection);
  HttpScript NextScript(const HttpRequestSeen& seen);

  const std::string address_;
  int port_ = 0;
  UniqueFd listener_;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  std::vector<HttpRequestSeen> requests_;  // guarded by mutex_
  std::deque<HttpScript> scripts_;         // guarded by mutex_
  HttpScript otherwise_;                   // guarded by mutex_
  std::vector<int> open_;                  // guarded by mutex_
  std::vector<std::thread> servers_;       // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_SCRIPTED_HTTP_SERVER_H_

// Reads the log of one pod line by line, each line once: a connection that breaks is made again,
// and what was read before is left out. The API server ends a log in good order also when the node
// has broken off, so a log that is followed is over only when it was read once more after the
// container had ended.
//
// For one reader. Poll blocks as RestClient::Log does while they connect.
#ifndef RINGMASTER_CLI_KUBECTL_POD_LOG_READER_H_
#define RINGMASTER_CLI_KUBECTL_POD_LOG_READER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/rest/rest_client.h"

namespace ringmaster::cli::kubectl {

// Which lines of a log were handed out already, by the times that the kubelet put before them.
// Several lines may have the same time. Pure.
class LinesSeen {
 public:
  // The stream begins again, at or before the last line: what follows may have been seen.
  void Restart();
  // Whether the line with this time ("" where it has none) was handed out. Notes it otherwise.
  bool Skip(std::string_view time);
  const std::string& last_time() const { return last_time_; }

 private:
  std::string last_time_;
  std::optional<Time> last_;
  int at_last_ = 0;  // lines with exactly this time
  int to_skip_ = 0;  // of these, after a restart
  bool restarted_ = false;
};

class PodLogReader {
 public:
  struct Options {
    std::string container;
    std::optional<int> tail_lines;
    bool follow = false;
    bool timestamps = false;  // hand them out too
  };
  using Line = std::function<void(std::string_view)>;

  PodLogReader(kube::rest::RestClient& client, kube::ObjectKey pod, Options options);

  // What the cluster says now: whether the container has ended. A log that is followed and came to
  // its end earlier is connected to again.
  void Refresh(bool container_ended);

  // Hands out the lines that are there now. After an error it may be called again: it connects
  // anew. Where the log is followed, a connection that breaks is no error. kInvalidArgument: the
  // container has not started. kNotFound: the pod is gone.
  absl::Status Poll(const Line& line);

  // The pod is gone: what comes over the open connection is the last.
  void Abandon();
  // The whole log was handed out, or all of it that can be had.
  bool over() const { return over_; }

 private:
  absl::Status Connect();
  void Close(bool whole);
  void HandOut(std::string_view stamped, const Line& line);

  kube::rest::RestClient& client_;
  const kube::ObjectKey pod_;
  const Options options_;
  std::unique_ptr<kube::rest::LogStream> stream_;
  LinesSeen seen_;
  bool ended_ = false;    // the container
  bool final_ = false;    // the stream was opened after that
  bool resting_ = false;  // it came to its end; connect again after the next Refresh
  bool gone_ = false;     // the pod
  bool over_ = false;
};

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_POD_LOG_READER_H_

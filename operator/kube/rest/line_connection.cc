#include "operator/kube/rest/line_connection.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::kube::rest {

LineConnection::LineConnection(HttpConnection::Options options, Bounds bounds)
    : bounds_(bounds), connection_(std::move(options)) {}

absl::StatusOr<HttpResponse> LineConnection::Open(const HttpRequest& request, SteadyTime deadline) {
  RM_RETURN_IF_ERROR(connection_.Connect(deadline));
  RM_ASSIGN_OR_RETURN(HttpResponse response, connection_.Ask(request, deadline));
  heard_ = SteadyTime::clock::now();
  if (response.code != 200) {
    RM_RETURN_IF_ERROR(connection_.ReadAll(response.body, bounds_.body_bytes, deadline));
  }
  return response;
}

absl::StatusOr<std::string> LineConnection::Next(SteadyTime deadline) {
  while (true) {
    if (connection_.IsStopped()) End(absl::CancelledError("the stream was stopped"));
    auto line = TakeLine();
    if (!absl::IsDeadlineExceeded(line.status())) return line;
    // What has come while the reader was elsewhere is read all the same.
    const SteadyTime silent = heard_ + bounds_.idle;
    const absl::Status read = Read(std::min(deadline, silent));
    if (read.ok()) {
      heard_ = SteadyTime::clock::now();
    } else if (!absl::IsDeadlineExceeded(read)) {
      End(read);
    } else if (deadline < silent) {
      return absl::DeadlineExceededError("nothing came in time");
    } else {
      End(absl::UnavailableError("nothing was heard from the server for too long"));
    }
  }
}

// A line that has come; kDeadlineExceeded where none has yet, and otherwise why none will.
absl::StatusOr<std::string> LineConnection::TakeLine() {
  if (absl::IsCancelled(end_)) return end_;
  searched_ = std::min(text_.find('\n', searched_), text_.size());
  const bool found = searched_ < text_.size();
  if (searched_ - taken_ > bounds_.line_bytes) {
    End(absl::OutOfRangeError(fmt::format("a line has more than {} bytes", bounds_.line_bytes)));
    return end_;
  }
  if (!found && end_.ok()) return absl::DeadlineExceededError("nothing came in time");
  if (!found && (!whole_ || taken_ == text_.size())) return end_;
  std::string line = text_.substr(taken_, searched_ - taken_);
  taken_ = searched_ = searched_ + (found ? 1 : 0);
  // Moves the rest to the front only when that is cheaper than what was read.
  if (taken_ * 2 >= text_.size()) {
    text_.erase(0, taken_);
    taken_ = searched_ = 0;
  }
  return line;
}

absl::Status LineConnection::Read(SteadyTime deadline) {
  RM_RETURN_IF_ERROR(connection_.ReadSome(text_, deadline));
  if (!connection_.IsWhole()) return absl::OkStatus();
  whole_ = true;
  return absl::UnavailableError("the stream ended");
}

void LineConnection::End(absl::Status why) {
  end_ = std::move(why);
  connection_.Close();
}

bool LineConnection::IsExhausted() const {
  return whole_ && taken_ == text_.size();
}

void LineConnection::Stop() {
  connection_.Stop();
}

}  // namespace ringmaster::kube::rest

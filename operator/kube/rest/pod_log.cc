#include "operator/kube/rest/pod_log.h"

#include <string_view>
#include <utility>

#include "common/status.h"
#include "operator/kube/rest/caller.h"
#include "operator/kube/rest/resource_path.h"
#include "operator/kube/rest/rest_client.h"

namespace ringmaster::kube::rest {
namespace {

class PodLog final : public LogStream {
 public:
  PodLog(OpenStream stream, std::string what)
      : stream_(std::move(stream)), what_(std::move(what)) {}

  absl::StatusOr<std::optional<std::string>> Next(std::chrono::milliseconds timeout) override {
    auto line = stream_.lines->Next(SteadyTime::clock::now() + timeout);
    if (line.ok()) return std::optional(*std::move(line));
    if (stream_.lines->IsExhausted()) return std::optional<std::string>();
    return Annotate(line.status(), what_);
  }

 private:
  const OpenStream stream_;
  const std::string what_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LogStream>> RestClient::Log(const ObjectKey& pod,
                                                           const LogOptions& options) {
  RM_ASSIGN_OR_RETURN(const std::string path, ObjectPath(kPod, pod));
  const auto Flag = [](bool on) { return std::string_view(on ? "true" : ""); };
  const Query query =
      Query()
          .Add("container", options.container)
          .Add("follow", Flag(options.follow))
          .Add("timestamps", Flag(options.timestamps))
          .Add("tailLines", options.tail_lines ? std::to_string(*options.tail_lines) : "")
          .Add("sinceTime", options.since_time);
  RM_ASSIGN_OR_RETURN(OpenStream stream,
                      caller_->Open({.method = "GET", .path = path + "/log" + query.text()}));
  return std::make_unique<PodLog>(std::move(stream), "log of " + pod.ToString());
}

}  // namespace ringmaster::kube::rest

// How the threads of a worker are to be bound: what a job asks for, told to its launchers in an
// environment variable. Pure.
#ifndef RINGMASTER_COMMON_BIND_REQUEST_H_
#define RINGMASTER_COMMON_BIND_REQUEST_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ringmaster {

struct BindRequest {
  int threads = 1;        // that compute, each on a core of its own
  int communication = 0;  // cores that are set apart for all other threads

  int cores() const { return threads + communication; }
};

// "2+1": the value of RINGMASTER_BIND. kInvalidArgument for any other text.
std::string FormatBindRequest(const BindRequest& request);
absl::StatusOr<BindRequest> ParseBindRequest(std::string_view text);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_BIND_REQUEST_H_

// The communicator of a worker that is alone, for what needs one.
#ifndef RINGMASTER_RUNTIME_TRAIN_LONE_COMMUNICATOR_H_
#define RINGMASTER_RUNTIME_TRAIN_LONE_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/transport/tcp/listener.h"

namespace ringmaster::train {

class LoneCommunicator {
 public:
  static absl::StatusOr<LoneCommunicator> Create();

  collectives::Communicator& operator*() const { return *communicator_; }

 private:
  // The communicator refers to it.
  std::unique_ptr<collectives::tcp::Listener> listener_;
  std::unique_ptr<collectives::Communicator> communicator_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_LONE_COMMUNICATOR_H_

#include "runtime/train/lone_communicator.h"

#include <string>

#include "common/status.h"

namespace ringmaster::train {
namespace {

collectives::CommunicatorOptions Alone(const std::string& address) {
  collectives::CommunicatorOptions round;
  round.job = "lone worker";
  round.round = 1;
  round.rank = 0;
  round.members = {{.address = address, .pod_uid = "lone"}};
  round.key = "nobody else takes part in it";
  return round;
}

}  // namespace

absl::StatusOr<LoneCommunicator> LoneCommunicator::Create() {
  LoneCommunicator lone;
  RM_ASSIGN_OR_RETURN(lone.listener_, collectives::tcp::Listener::Open("127.0.0.1:0"));
  RM_ASSIGN_OR_RETURN(lone.communicator_, collectives::Communicator::Create(
                                              Alone(lone.listener_->address()), *lone.listener_));
  return lone;
}

}  // namespace ringmaster::train

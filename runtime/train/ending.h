// How a session ended: the exit code of the program and the last line of its log.
#ifndef RINGMASTER_RUNTIME_TRAIN_ENDING_H_
#define RINGMASTER_RUNTIME_TRAIN_ENDING_H_

#include <string>

#include "common/contract.h"

namespace ringmaster::train {

struct Ending {
  int exit_code = contract::kExitOk;
  std::string message;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_ENDING_H_

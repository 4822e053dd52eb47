#include "common/thread_waiting.h"

#include "common/env.h"

namespace ringmaster {

std::map<std::string, std::string> WaitingEnvironment() {
  constexpr char kLooks[] = "GOMP_SPINCOUNT";
  if (env::IsSet(kLooks) || env::IsSet("OMP_WAIT_POLICY")) return {};
  return {{kLooks, env::GetString(kLooks)}};
}

}  // namespace ringmaster

// The trainer of a job, for commands that look at the job instead of running it.
#ifndef RINGMASTER_CLI_JOB_TRAINER_H_
#define RINGMASTER_CLI_JOB_TRAINER_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

// Reads and checks the manifest, with `set` over it, then becomes the job's trainer with these
// arguments: its own network is known to it alone. Returns, with an exit code, only if it cannot.
// `what` of a job the trainer says ("the network").
int BecomeTrainer(const std::string& manifest, const std::vector<std::string>& set,
                  const std::string& what, const std::vector<std::string>& arguments);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_JOB_TRAINER_H_

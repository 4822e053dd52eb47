// The main function of a trainer with parts of the user's own. Includes all that such parts are
// written with.
//
//   #include <ringmaster/train/trainer.h>
//
//   int main(int argc, char** argv) {
//     ringmaster::train::Parts parts;
//     parts.AddNetwork("tiny", BuildTiny);  // parts.h
//     return ringmaster::train::TrainerMain(argc, argv, parts);
//   }
//
// A job starts it by its path, `spec.trainer.program`; ringmaster-train is this with no parts.
#ifndef RINGMASTER_RUNTIME_TRAIN_TRAINER_H_
#define RINGMASTER_RUNTIME_TRAIN_TRAINER_H_

#include "runtime/graph/ops.h"
#include "runtime/nn/layers.h"
#include "runtime/train/parts.h"

namespace ringmaster::train {

// Trains what the launcher says, as one worker of a job, and leaves the process with the worker's
// exit code (std::quick_exit: a checkpoint may still be written). --help, which lists the parts,
// and --print-config print and return 0; --dump-graph FOLDER writes what becomes of the job's
// network, --profile FOLDER where the time of its steps goes, --evaluate [--json] SAVED... how
// right saved weights are. Any other argument is refused with 64, a mistake in `parts`
// (Parts::status) with 65.
//
// Takes the process over: it sets signal handlers and the number of threads, writes its log to
// standard error and serves metrics on the worker's address. Call it once, from main.
int TrainerMain(int argc, char** argv, const Parts& parts);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_TRAINER_H_

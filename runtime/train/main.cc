// ringmaster-train: the native trainer of a worker. The launcher starts it and tells it everything
// over its channel; it is no command for people.
#include "runtime/train/trainer.h"

int main(int argc, char** argv) {
  return ringmaster::train::TrainerMain(argc, argv, {});
}

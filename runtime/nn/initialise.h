// The values that a model's flat buffers begin with: a function of the seed and the tensors' names
// and shapes, so every rank computes the same ones. Thread-safe.
#ifndef RINGMASTER_RUNTIME_NN_INITIALISE_H_
#define RINGMASTER_RUNTIME_NN_INITIALISE_H_

#include <cstdint>
#include <span>

#include "runtime/nn/model.h"

namespace ringmaster::nn {

// Writes every parameter's initial value, and zeros between them. `weights` has
// model.parameter_floats.
void InitialiseParameters(const Model& model, uint64_t seed, std::span<float> weights);

// Writes every state's initial value, and zeros between them. `states` has model.state_floats.
void InitialiseStates(const Model& model, std::span<float> states);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_INITIALISE_H_

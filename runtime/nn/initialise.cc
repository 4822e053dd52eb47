#include "runtime/nn/initialise.h"

#include <algorithm>

#include "runtime/tensor/random.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::nn {

void InitialiseParameters(const Model& model, uint64_t seed, std::span<float> weights) {
  std::ranges::fill(weights, 0.0f);
  for (const Parameter& parameter : model.parameters) {
    tensor::Tensor view = tensor::Tensor::View(weights.data() + parameter.offset, parameter.shape,
                                               tensor::DType::kF32);
    const auto value = static_cast<float>(parameter.initialiser.value);
    switch (parameter.initialiser.kind) {
      case Initialiser::Kind::kConstant:
        std::ranges::fill(view.span<float>(), value);
        break;
      case Initialiser::Kind::kUniform:
        tensor::FillUniform(view, -value, value, seed, parameter.name);
        break;
      case Initialiser::Kind::kNormal:
        tensor::FillNormal(view, value, seed, parameter.name);
        break;
    }
  }
}

void InitialiseStates(const Model& model, std::span<float> states) {
  std::ranges::fill(states, 0.0f);
  for (const State& state : model.states) {
    std::ranges::fill(states.subspan(state.offset, static_cast<size_t>(state.shape.elements())),
                      state.initial);
  }
}

}  // namespace ringmaster::nn

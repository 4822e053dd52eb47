// Whether numbers are finite: neither infinite nor NaN.
#ifndef RINGMASTER_RUNTIME_TENSOR_FINITE_H_
#define RINGMASTER_RUNTIME_TENSOR_FINITE_H_

#include <span>

namespace ringmaster::tensor {

// Whether all are. A pass over memory at its speed, on the process's threads where that pays.
bool AllFinite(std::span<const float> values);
bool AllFinite(std::span<const double> values);

}  // namespace ringmaster::tensor

#endif  // RINGMASTER_RUNTIME_TENSOR_FINITE_H_

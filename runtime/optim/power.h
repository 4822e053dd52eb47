// Powers by squaring: the C library's pow may differ in the last bit from one processor to another,
// and all ranks must agree.
#ifndef RINGMASTER_RUNTIME_OPTIM_POWER_H_
#define RINGMASTER_RUNTIME_OPTIM_POWER_H_

#include <cstdint>

namespace ringmaster::optim {

inline double Power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_POWER_H_

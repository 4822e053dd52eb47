#include "runtime/tensor/dtype.h"

namespace ringmaster::tensor {

size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 2;
    case DType::kU8:
      return 1;
    case DType::kF32:
    case DType::kI32:
      break;
  }
  return 4;
}

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kBF16:
      return "bf16";
    case DType::kU8:
      return "u8";
  }
  return "unknown";
}

}  // namespace ringmaster::tensor

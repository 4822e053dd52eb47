#include "runtime/collectives/nccl/vendor.h"

#include <dlfcn.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::collectives::nccl {
namespace {

constexpr char kDriver[] = "libcuda.so.1";
constexpr char kNccl[] = "libnccl.so.2";

struct Library {
  void* handle = nullptr;
  std::string missing;  // the loader's words, or a function's name
};

Library Open(const char* name) {
  Library library;
  library.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) library.missing = dlerror();
  return library;
}

template <typename Function>
void Find(Library& library, const char* name, Function* function) {
  if (library.handle == nullptr) return;
  *function = reinterpret_cast<Function>(dlsym(library.handle, name));
  if (*function == nullptr && library.missing.empty())
    library.missing = fmt::format("it has no {}, so it is too old", name);
}

absl::StatusOr<Vendor> Load() {
  Vendor vendor;
  Library driver = Open(kDriver);
  Library nccl = Open(kNccl);
// The names reach the text with the version that cuda.h gives them.
#define RM_TEXT(name) #name
#define RM_FIND_IN_DRIVER(function) Find(driver, RM_TEXT(function), &vendor.function);
#define RM_FIND_IN_NCCL(function) Find(nccl, RM_TEXT(function), &vendor.function);
  RM_CUDA_FUNCTIONS(RM_FIND_IN_DRIVER)
  RM_NCCL_FUNCTIONS(RM_FIND_IN_NCCL)
#undef RM_FIND_IN_NCCL
#undef RM_FIND_IN_DRIVER
#undef RM_TEXT
  std::vector<std::string> missing;
  if (!driver.missing.empty()) {
    missing.push_back(
        fmt::format("the NVIDIA driver ({}), which a machine with a GPU has, and a container by "
                    "its runtime",
                    driver.missing));
  }
  if (!nccl.missing.empty()) {
    missing.push_back(fmt::format(
        "NCCL ({}): install it (libnccl2 of NVIDIA's Debian packages, or nvidia-nccl-cu13"
        " or -cu12 of PyPI) and name its folder in LD_LIBRARY_PATH",
        nccl.missing));
  }
  if (!missing.empty())
    return absl::FailedPreconditionError(fmt::format("missing: {}", fmt::join(missing, "; and ")));
  if (const CUresult started = vendor.cuInit(0); started != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(
        fmt::format("the NVIDIA driver offers no GPU ({}); nvidia-smi says more",
                    Message(vendor.Check(started, "cuInit"))));
  }
  return vendor;
}

}  // namespace

absl::Status Vendor::Check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  const std::string message = fmt::format(
      "{}: {}", call, text != nullptr ? text : fmt::format("error {}", static_cast<int>(result)));
  return result == CUDA_ERROR_OUT_OF_MEMORY ? absl::ResourceExhaustedError(message)
                                            : absl::InternalError(message);
}

absl::Status Vendor::Check(ncclResult_t result, const char* call) const {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const std::string more = ncclGetLastError(nullptr);
  return absl::InternalError(
      fmt::format("{}: {}{}{}", call, ncclGetErrorString(result), more.empty() ? "" : ": ", more));
}

absl::StatusOr<const Vendor*> LoadVendor() {
  static const absl::StatusOr<Vendor> vendor = Load();
  if (!vendor.ok()) return vendor.status();
  return &*vendor;
}

std::string VersionText(int code) {
  return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

}  // namespace ringmaster::collectives::nccl

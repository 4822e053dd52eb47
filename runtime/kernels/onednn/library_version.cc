#include "runtime/kernels/library_version.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

namespace ringmaster::kernels {

std::string LibraryVersion() {
  const dnnl_version_t* const version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch,
                     version->hash);
}

}  // namespace ringmaster::kernels

// Which release of the library that kernels are taken from (oneDNN) this is, as its bits may change
// with it.
#ifndef RINGMASTER_RUNTIME_KERNELS_LIBRARY_VERSION_H_
#define RINGMASTER_RUNTIME_KERNELS_LIBRARY_VERSION_H_

#include <string>

namespace ringmaster::kernels {

// "oneDNN 2.7.5 (a hash of its sources)"; of the library that is loaded, not of its headers.
std::string LibraryVersion();

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_LIBRARY_VERSION_H_

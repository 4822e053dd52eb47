// Large buffers' pages, taken all at once.
#ifndef RINGMASTER_RUNTIME_DEVICE_PAGES_H_
#define RINGMASTER_RUNTIME_DEVICE_PAGES_H_

#include <cstddef>

#include "runtime/device/memory.h"

namespace ringmaster::device {

// Of x86 and most others; where it is another, huge pages are of less use.
inline constexpr size_t kHugePage = size_t{2} << 20;

// Takes the pages of a buffer that nobody has written to yet and all of which is used soon. The
// process's threads (threads.h) share the work, so this is for whoever computes with them. They are
// huge pages as long as these come soon: kernels that stream through them wait less for page
// tables. But a virtual machine that gives free memory back to its host does so in huge pages, and
// each that it then fetches again takes it many times as long as small ones that it kept. The rest
// stays small pages, which come when they are first used. A limit of memory is met here.
void TakePages(const Buffer& buffer);

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_PAGES_H_

// Preloaded into user-mode Linux, which keeps its processes' registers by ptrace in 2,696 bytes:
// all that processors had before the tiles of AMX. A kernel takes registers back only as the whole
// set, which on a machine with tiles is larger, and user-mode Linux of 6.1 then panics. What it
// does not know of stays as the process has it; its processes cannot ask for tiles, so nothing is
// lost.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>

#include <sys/ptrace.h>
#include <sys/uio.h>

enum { kLargestSet = 1 << 16 };

long ptrace(enum __ptrace_request request, ...) {
  static long (*next)(enum __ptrace_request, ...);
  if (next == NULL) next = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");

  va_list arguments;
  va_start(arguments, request);
  const pid_t process = va_arg(arguments, pid_t);
  void* const address = va_arg(arguments, void*);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  if (request != PTRACE_SETREGSET || address != (void*)NT_X86_XSTATE)
    return next(request, process, address, data);

  const struct iovec* known = data;
  static _Thread_local char set[kLargestSet];
  struct iovec whole = {set, sizeof set};
  if (next(PTRACE_GETREGSET, process, address, &whole) < 0) return -1;
  memcpy(set, known->iov_base, known->iov_len < whole.iov_len ? known->iov_len : whole.iov_len);
  return next(request, process, address, &whole);
}

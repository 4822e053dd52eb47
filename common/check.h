// RM_CHECK: aborts on a bug of ours, never on input. The message says what was believed.
#ifndef RINGMASTER_COMMON_CHECK_H_
#define RINGMASTER_COMMON_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define RM_CHECK(condition, message)                                                        \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", __FILE__, __LINE__, #condition, \
                   message);                                                                \
      std::abort();                                                                         \
    }                                                                                       \
  } while (false)

#endif  // RINGMASTER_COMMON_CHECK_H_

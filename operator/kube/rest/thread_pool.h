// The threads of cpprestsdk, which all of a process's transports share. Thread-safe.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_THREAD_POOL_H_
#define RINGMASTER_OPERATOR_KUBE_REST_THREAD_POOL_H_

#include "common/clock.h"

namespace ringmaster::kube::rest {

// Once in a process: the first call decides; the library would otherwise start 40 threads.
void SizeThreadPool(int threads);

// Waits, until `deadline` at most, for what the library's threads do at the moment and what that
// leaves for them to do. A request tells of its end before its last continuation has run, and one
// that has not when the process ends is never freed. Must not be called by one of these threads.
void SettleThreadPool(SteadyTime deadline);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_THREAD_POOL_H_

// What a long-lived process with many objects does to glibc's allocator so that its memory is what
// it uses, and not what it has used at its worst moment. A burst (a long list, ten thousand changed
// objects) is decoded in many small pieces by several threads; left alone, each thread's part of
// the heap stays as large as it was then.
//
// With another allocator, or a sanitizer's, both do nothing.
#ifndef RINGMASTER_COMMON_HEAP_H_
#define RINGMASTER_COMMON_HEAP_H_

namespace ringmaster {

// Call first in main, before there are threads: all of them share a few parts of the heap, so that
// what one has freed serves another, and large blocks go back to the system as soon as they are
// freed.
void UseHeapSparingly();

// Gives free pages back to the system. Takes some milliseconds for a hundred megabytes, in which
// other threads may wait for memory: to be called every so many seconds. Thread-safe.
void ReturnFreeMemory();

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_HEAP_H_

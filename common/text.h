// Numbers as people read them, and patterns as they write them. Pure.
#ifndef RINGMASTER_COMMON_TEXT_H_
#define RINGMASTER_COMMON_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

// 9410 -> "9,410".
std::string WithCommas(int64_t number);

// How many of what: "1 worker", "3 workers".
std::string WithNoun(int64_t count, std::string_view noun);

// Bytes as "0.10 MB" or "745.20 GB": millions of them, from a billion on billions.
std::string WithUnit(uint64_t bytes);

// Seconds with the unit that suits them, s, ms or µs: 0.0125 -> "12.5 ms".
std::string WithTimeUnit(double seconds);

// Whether `pattern`, in which `*` stands for any characters, stands for all of `name`. Takes at
// most the product of their lengths.
bool Matches(std::string_view pattern, std::string_view name);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_TEXT_H_

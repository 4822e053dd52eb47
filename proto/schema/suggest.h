// "Did you mean": the known word that a misspelt one is nearest to.
#ifndef RINGMASTER_PROTO_SCHEMA_SUGGEST_H_
#define RINGMASTER_PROTO_SCHEMA_SUGGEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::schema {

// The candidate with the smallest edit distance (Damerau's, restricted: a swap of neighbours is one
// edit) to `word`, case,
// '-' and '_' aside. Nothing where even the nearest differs in more than a third of its letters.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_SUGGEST_H_

// The schema of the API as a table: what fields a message has, what they may hold, and the rules
// between them.
//
// protoc-gen-ringmaster builds these tables from the .proto files and writes them out three times:
// as C++ (SchemaOf<T>() in the generated *.api.h), as the CRD's OpenAPI schema and CEL rules, and
// as docs/api.md. check.h walks a table over a JSON object. So a laptop and a cluster refuse the
// same things, and every rule is written once.
//
// A table is immutable once built and may be read from any thread. Message and Enum pointers are
// never null where the type calls for them, and live as long as the program.
#ifndef RINGMASTER_PROTO_SCHEMA_SCHEMA_H_
#define RINGMASTER_PROTO_SCHEMA_SCHEMA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::schema {

struct Message;

enum class Type {
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kString,
  kTimestamp,  // a string, RFC 3339
  kEnum,       // a string, one of Enum::values
  kMessage,
  kRaw,  // an object that is passed through whole, looked at only where RawField says so
};

// Whether the field holds one value, a list of them, or a map from strings to them.
enum class Shape { kSingle, kList, kMap };

struct EnumValue {
  std::string name;  // as JSON spells it: Running
  std::string description;
};

struct Enum {
  std::string name;
  std::string description;
  std::vector<EnumValue> values;
};

// A field inside a raw object that a rule looks at: spec.containers[0].command, always a list of
// strings.
struct RawField {
  std::string path;
};

struct Field {
  std::string name;  // as JSON spells it: minReplicas
  std::string description;
  Type type = Type::kString;
  Shape shape = Shape::kSingle;
  const Message* message = nullptr;   // kMessage only
  const Enum* enumeration = nullptr;  // kEnum only
  bool required = false;
  std::string default_json;       // empty: no default
  std::optional<double> minimum;  // of a number
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  std::optional<std::uint32_t> min_length;  // of a string, in characters
  std::optional<std::uint32_t> max_length;
  std::string pattern;                     // a whole string matches it
  std::string pattern_help;                // what the pattern wants, as the end of "must be ..."
  std::vector<std::string> allowed;        // the only values of a string; empty: any
  std::optional<std::uint32_t> min_items;  // of a list or map
  std::optional<std::uint32_t> max_items;
  std::vector<std::string> list_map_keys;  // these fields tell the items of a list apart
  bool immutable = false;                  // once set, never changes
  bool atomic = false;                     // one writer has all of it; for generators only
  std::string format;                      // OpenAPI's, where the type does not give it
  std::vector<RawField> raw_fields;        // kRaw only
};

enum class RuleKind { kLessOrEqual, kRequires, kExactlyOne, kAtMostOne, kAtLeastOne };

// One rule over several fields of a message, named by paths from that message:
// workers.template.spec.containers[0].command. kLessOrEqual and kRequires have two paths (left,
// right; field, what it needs), the others two or more.
struct Rule {
  RuleKind kind = RuleKind::kAtLeastOne;
  std::vector<std::string> paths;
  std::string mend;  // what the reader should do; may be empty
};

struct PrinterColumn {
  std::string name;
  std::string type;
  std::string json_path;
  std::string description;
  std::int32_t priority = 0;
};

// What makes a message a kind of the Kubernetes API.
struct Resource {
  std::string group;    // training.ringmaster.dev
  std::string version;  // v1alpha1
  std::string kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  std::vector<PrinterColumn> printer_columns;
  std::string scale_spec_replicas_path;
  std::string scale_status_replicas_path;
  std::string scale_label_selector_path;
  std::uint32_t max_name_length = 63;

  std::string ApiVersion() const { return group + "/" + version; }
};

struct Message {
  std::string name;
  std::string description;
  std::vector<Field> fields;
  std::vector<Rule> rules;  // those of its oneofs included
  std::optional<Resource>
      resource;  // on the kind itself: apiVersion, kind and metadata are then fields too
};

// The field of that JSON name, or null.
const Field* FindField(const Message& message, const std::string& name);

}  // namespace ringmaster::schema

#endif  // RINGMASTER_PROTO_SCHEMA_SCHEMA_H_

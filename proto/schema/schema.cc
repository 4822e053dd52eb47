#include "proto/schema/schema.h"

namespace ringmaster::schema {

const Field* FindField(const Message& message, const std::string& name) {
  for (const Field& field : message.fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

}  // namespace ringmaster::schema

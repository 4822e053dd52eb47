#include "operator/api/metadata.h"

namespace ringmaster::api {
namespace {

using schema::Field;
using schema::Shape;
using schema::Type;

const schema::Message& OwnerReferenceSchema() {
  static const schema::Message table = {
      .name = "OwnerReference",
      .fields = {{.name = "apiVersion", .required = true},
                 {.name = "kind", .required = true},
                 {.name = "name", .required = true},
                 {.name = "uid", .required = true},
                 {.name = "controller", .type = Type::kBool},
                 {.name = "blockOwnerDeletion", .type = Type::kBool}},
  };
  return table;
}

const schema::Message& ManagedFieldsSchema() {
  static const schema::Message table = {
      .name = "ManagedFieldsEntry",
      .fields = {{.name = "manager"},
                 {.name = "operation"},
                 {.name = "apiVersion"},
                 {.name = "time", .type = Type::kTimestamp},
                 {.name = "fieldsType"},
                 {.name = "fieldsV1", .type = Type::kRaw},
                 {.name = "subresource"}},
  };
  return table;
}

}  // namespace

const schema::Message& ObjectMetaSchema() {
  static const schema::Message table = {
      .name = "ObjectMeta",
      .fields = {{.name = "name"},
                 {.name = "generateName"},
                 {.name = "namespace"},
                 {.name = "labels", .shape = Shape::kMap},
                 {.name = "annotations", .shape = Shape::kMap},
                 {.name = "finalizers", .shape = Shape::kList},
                 {.name = "ownerReferences",
                  .type = Type::kMessage,
                  .shape = Shape::kList,
                  .message = &OwnerReferenceSchema()},
                 // A server's own, in the output of `kubectl get -o yaml`.
                 {.name = "uid"},
                 {.name = "resourceVersion"},
                 {.name = "generation", .type = Type::kInt64},
                 {.name = "creationTimestamp", .type = Type::kTimestamp},
                 {.name = "deletionTimestamp", .type = Type::kTimestamp},
                 {.name = "deletionGracePeriodSeconds", .type = Type::kInt64},
                 {.name = "selfLink"},
                 {.name = "managedFields",
                  .type = Type::kMessage,
                  .shape = Shape::kList,
                  .message = &ManagedFieldsSchema()}},
  };
  return table;
}

}  // namespace ringmaster::api

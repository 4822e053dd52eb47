// The handlers of informer.h: which key to look at when an object changes.
#include <nlohmann/json.hpp>

#include "operator/controller/informer.h"
#include "operator/kube/object.h"

namespace ringmaster::controller {
namespace {

using KeyOfInterest = std::function<std::optional<ObjectKey>(const kube::Json& object)>;

// Enqueues for the state before and after: an object that moves from one owner to another concerns
// both.
Handler Enqueue(WorkQueue& queue, KeyOfInterest find, Gather gather = {}) {
  return [&queue, find = std::move(find), gather = std::move(gather)](const ObjectPtr& before,
                                                                      const ObjectPtr& after) {
    const Duration wait = gather ? gather() : Duration(0);
    for (const ObjectPtr& object : {before, after}) {
      if (object == nullptr) continue;
      if (const auto key = find(*object)) queue.AddAfter(*key, wait);
    }
  };
}

}  // namespace

Handler EnqueueSelf(WorkQueue& queue) {
  return Enqueue(queue, [](const kube::Json& object) { return kube::KeyOf(object); });
}

Handler EnqueueController(WorkQueue& queue, const kube::ResourceType& owner, Gather gather) {
  const auto controller = [owner](const kube::Json& object) -> std::optional<ObjectKey> {
    const kube::Json* reference = kube::ControllerOf(object);
    if (reference == nullptr || kube::FindString(*reference, {"kind"}) != owner.kind ||
        kube::FindString(*reference, {"apiVersion"}) != owner.ApiVersion()) {
      return std::nullopt;
    }
    return ObjectKey{kube::Namespace(object), kube::FindString(*reference, {"name"})};
  };
  return Enqueue(queue, controller, std::move(gather));
}

Handler EnqueueByLabel(WorkQueue& queue, std::string label) {
  return Enqueue(queue,
                 [label = std::move(label)](const kube::Json& object) -> std::optional<ObjectKey> {
                   auto name = kube::Label(object, label);
                   if (!name) return std::nullopt;
                   return ObjectKey{kube::Namespace(object), *std::move(name)};
                 });
}

}  // namespace ringmaster::controller

// Conformance of List and Watch.
#include <thread>

#include "operator/kube/conformance/client_conformance.h"
#include "operator/kube/errors.h"

namespace ringmaster::kube::conformance {
namespace {

std::vector<std::string> Names(const ObjectList& list) {
  std::vector<std::string> names;
  for (const ObjectPtr& item : list.items) names.push_back(Name(*item));
  return names;
}

Json Labelled(Json object, const std::string& key, const std::string& value) {
  SetLabel(object, key, value);
  return object;
}

TEST_P(ClientConformance, ListGivesTheObjectsOfOneNamespaceInOrder) {
  for (const char* name : {"c", "a", "b"}) Create(kConfigMap, ConfigMap(name));
  Json elsewhere = ConfigMap("d");
  elsewhere["metadata"]["namespace"] = server_->FreshNamespace();
  Create(kConfigMap, elsewhere);
  const auto list = client().List(kConfigMap, ns_, {.label_selector = "!kube-root"});
  ASSERT_TRUE(list.ok()) << list.status();
  std::vector<std::string> names = Names(*list);
  std::erase(names, "kube-root-ca.crt");  // a cluster puts it into every namespace
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ((*list->items[0])["kind"], "ConfigMap");
  EXPECT_EQ((*list->items[0])["apiVersion"], "v1");
}

TEST_P(ClientConformance, ListWithoutANamespaceGivesAll) {
  Create(kLease, NewObject(kLease, Key("a")));
  const std::string other = server_->FreshNamespace();
  Create(kLease, NewObject(kLease, {other, "a"}));
  const ObjectList list = Must(client().List(kLease, "", {}));
  int found = 0;
  for (const ObjectPtr& item : list.items)
    found += Namespace(*item) == ns_ || Namespace(*item) == other;
  EXPECT_EQ(found, 2);
}

TEST_P(ClientConformance, SelectorsMatchAsKubernetesDefinesThem) {
  Create(kLease, Labelled(NewObject(kLease, Key("red")), "color", "red"));
  Create(kLease, Labelled(NewObject(kLease, Key("blue")), "color", "blue"));
  Create(kLease, NewObject(kLease, Key("plain")));
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"color=red", {"red"}},
      {"color==red", {"red"}},
      {"color!=red", {"blue", "plain"}},
      {"color", {"blue", "red"}},
      {"!color", {"plain"}},
      {"color in (red, blue)", {"blue", "red"}},
      {"color notin (red)", {"blue", "plain"}},
      {"color,color!=red", {"blue"}},
  };
  for (const auto& [selector, expected] : cases) {
    const auto list = client().List(kLease, ns_, {.label_selector = selector});
    ASSERT_TRUE(list.ok()) << selector << ": " << list.status();
    EXPECT_EQ(Names(*list), expected) << selector;
  }
}

TEST_P(ClientConformance, AMalformedSelectorIsABadRequest) {
  for (const char* selector : {"a in (b", "=x", "a,,b", "a in", "x y"}) {
    const auto list = client().List(kLease, ns_, {.label_selector = selector});
    EXPECT_EQ(Reason(list.status()), kReasonBadRequest) << selector;
  }
}

TEST_P(ClientConformance, PagesShowOneMomentThoughObjectsComeAndGo) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Create(kLease, NewObject(kLease, Key(name)));
  const ObjectList first = Must(client().List(kLease, ns_, {.limit = 2}));
  EXPECT_EQ(Names(first), (std::vector<std::string>{"a", "b"}));
  Delete(kLease, "d");
  Create(kLease, NewObject(kLease, Key("cc")));
  const ObjectList second =
      Must(client().List(kLease, ns_, {.limit = 2, .continue_token = first.continue_token}));
  const ObjectList third =
      Must(client().List(kLease, ns_, {.limit = 2, .continue_token = second.continue_token}));
  EXPECT_EQ(Names(second), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(Names(third), (std::vector<std::string>{"e"}));
  EXPECT_EQ(third.continue_token, "");
  EXPECT_EQ(third.resource_version, first.resource_version);
}

TEST_P(ClientConformance, AForgottenContinueTokenHasExpired) {
  for (const char* name : {"a", "b"}) Create(kLease, NewObject(kLease, Key(name)));
  const ObjectList first = Must(client().List(kLease, ns_, {.limit = 1}));
  if (!server_->ExpireHistory()) GTEST_SKIP() << "this server cannot be made to forget";
  const auto next =
      client().List(kLease, ns_, {.limit = 1, .continue_token = first.continue_token});
  EXPECT_EQ(next.status().code(), absl::StatusCode::kOutOfRange);
}

TEST_P(ClientConformance, WatchDeliversWhatHappenedAfterTheListInOrder) {
  const std::string from = ListVersion(kLease);
  Json object = Create(kLease, NewObject(kLease, Key("a")));
  SetLabel(object, "x", "y");
  object = Must(client().Update(kLease, object));
  Delete(kLease, "a");
  auto stream = Watch(kLease, from);
  const WatchEvent added = NextEvent(*stream);
  const WatchEvent modified = NextEvent(*stream);
  const WatchEvent deleted = NextEvent(*stream);
  EXPECT_EQ(added.type, WatchEventType::kAdded);
  EXPECT_EQ(modified.type, WatchEventType::kModified);
  EXPECT_EQ(*modified.object, object);
  EXPECT_EQ(deleted.type, WatchEventType::kDeleted);
  EXPECT_EQ(Name(*deleted.object), "a");
  EXPECT_NE(ResourceVersion(*deleted.object), ResourceVersion(object));
}

TEST_P(ClientConformance, WatchResumesAfterTheLastEventSeen) {
  const std::string from = ListVersion(kLease);
  Create(kLease, NewObject(kLease, Key("a")));
  Create(kLease, NewObject(kLease, Key("b")));
  const WatchEvent first = NextEvent(*Watch(kLease, from));
  const WatchEvent second = NextEvent(*Watch(kLease, ResourceVersion(*first.object)));
  EXPECT_EQ(Name(*first.object), "a");
  EXPECT_EQ(Name(*second.object), "b");
}

TEST_P(ClientConformance, WatchDoesNotShowOtherNamespaces) {
  auto stream = Watch(kLease, ListVersion(kLease));
  Create(kLease, NewObject(kLease, {server_->FreshNamespace(), "other"}));
  Create(kLease, NewObject(kLease, Key("mine")));
  EXPECT_EQ(Name(*NextEvent(*stream).object), "mine");
}

TEST_P(ClientConformance, WatchTurnsLabelChangesIntoAddedAndDeleted) {
  auto stream = Watch(kLease, ListVersion(kLease), "color=red");
  Json object = Create(kLease, NewObject(kLease, Key("a")));
  SetLabel(object, "color", "red");
  object = Must(client().Update(kLease, object));
  SetLabel(object, "color", "blue");
  object = Must(client().Update(kLease, object));
  EXPECT_EQ(NextEvent(*stream).type, WatchEventType::kAdded);
  const WatchEvent left = NextEvent(*stream);
  EXPECT_EQ(left.type, WatchEventType::kDeleted);
  EXPECT_EQ(ResourceVersion(*left.object), ResourceVersion(object));
}

TEST_P(ClientConformance, AWatchThatWaitsSeesAChangeMadeMeanwhile) {
  auto stream = Watch(kLease, ListVersion(kLease));
  std::thread writer([this] { Create(kLease, NewObject(kLease, Key("a"))); });
  const WatchEvent event = NextEvent(*stream);
  writer.join();
  EXPECT_EQ(Name(*event.object), "a");
}

TEST_P(ClientConformance, NextSaysWhenNothingCameAndTheStreamStaysGood) {
  auto stream = Watch(kLease, ListVersion(kLease));
  const auto nothing = stream->Next(std::chrono::milliseconds(0));
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kDeadlineExceeded);
  Create(kLease, NewObject(kLease, Key("a")));
  EXPECT_EQ(Name(*NextEvent(*stream).object), "a");
}

TEST_P(ClientConformance, StopWakesAWaitingReader) {
  auto stream = Watch(kLease, ListVersion(kLease));
  absl::Status ended;
  std::thread reader([&] { ended = stream->Next(kDeadline).status(); });
  stream->Stop();
  reader.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(stream->Next(kDeadline).status().code(), absl::StatusCode::kCancelled);
}

TEST_P(ClientConformance, AWatchFromAForgottenVersionHasExpired) {
  const std::string old = ListVersion(kTrainingJob);
  Create(kTrainingJob, Job("a"));
  const std::string from = server_->ForgottenVersion(old);
  const auto stream = client().Watch(kTrainingJob, ns_, {.resource_version = from});
  const absl::Status status = stream.ok() ? (*stream)->Next(kDeadline).status() : stream.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Reason(status), kReasonExpired);
}

}  // namespace
}  // namespace ringmaster::kube::conformance

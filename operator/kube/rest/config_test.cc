// Where the server is and who we are, from files as kubectl's users have them.
#include "operator/kube/rest/config.h"

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base64.h"
#include "common/file.h"
#include "common/temporary_folder.h"
#include "operator/kube/rest/in_cluster.h"

namespace ringmaster::kube::rest {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A folder of its own, and an environment in which only it is to be found.
class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("HOME", (folder_ / "home").c_str(), 1);
    for (const char* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}) {
      unsetenv(name);
    }
  }

  std::string Write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = folder_ / name;
    EXPECT_TRUE(MakeDirectories(path.parent_path()).ok());
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path.string();
  }

  // A kubeconfig with one context, `c`, of this cluster and user.
  std::string WriteConfig(const std::string& name, const std::string& cluster,
                          const std::string& user) {
    return Write(name, fmt::format("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                                   "contexts:\n- name: c\n"
                                   "  context: {{cluster: k, user: u, namespace: blue}}\n"
                                   "clusters:\n- name: k\n  cluster: {}\n"
                                   "users:\n- name: u\n  user: {}\n",
                                   cluster, user));
  }

  static absl::Status Load(const std::string& path) { return LoadKubeconfig(path, "").status(); }

  const TemporaryFolder temporary_ = TemporaryFolder::Make().value();
  const std::filesystem::path folder_ = temporary_.path();
};

constexpr char kServer[] = "{server: 'https://1.2.3.4:6443'}";

TEST_F(ConfigTest, ReadsTheCurrentContext) {
  const std::string path =
      WriteConfig("config",
                  fmt::format("{{server: 'https://1.2.3.4:6443', tls-server-name: api, "
                              "certificate-authority-data: {}}}",
                              EncodeBase64("CA")),
                  fmt::format("{{client-certificate-data: {}, client-key-data: {}}}",
                              EncodeBase64("CERT"), EncodeBase64("KEY")));
  const auto config = LoadKubeconfig(path, "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://1.2.3.4:6443");
  EXPECT_EQ(config->tls_server_name, "api");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->default_namespace, "blue");
  EXPECT_FALSE(config->insecure_skip_tls_verify);
  EXPECT_EQ(config->origin, path + ", context c");
  const auto credentials = config->credentials->Get();
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(credentials->client_certificate_pem, "CERT");
  EXPECT_EQ(credentials->client_key_pem, "KEY");
}

TEST_F(ConfigTest, ReadsFilesBesideTheKubeconfig) {
  Write("certs/ca.pem", "CA");
  Write("certs/me.pem", "CERT");
  Write("certs/me.key", "KEY");
  Write("token", "secret\n");
  const auto config = LoadKubeconfig(
      WriteConfig("config", "{server: 'https://a', certificate-authority: certs/ca.pem}",
                  "{client-certificate: certs/me.pem, client-key: certs/me.key, "
                  "tokenFile: ./token}"),
      "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ca_pem, "CA");
  const auto credentials = config->credentials->Get();
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->bearer_token, "secret");
  EXPECT_EQ(credentials->client_certificate_pem, "CERT");
}

TEST_F(ConfigTest, ChoosesAnotherContextAndSaysWhenThereIsNone) {
  const std::string path = Write("config",
                                 "current-context: one\n"
                                 "contexts:\n"
                                 "- {name: one, context: {cluster: k, user: u}}\n"
                                 "- {name: two, context: {cluster: l}}\n"
                                 "- {name: broken, context: {cluster: gone}}\n"
                                 "clusters:\n"
                                 "- {name: k, cluster: {server: 'https://k'}}\n"
                                 "- {name: l, cluster: {server: 'https://l'}}\n"
                                 "users:\n- {name: u, user: {token: t}}\n");
  EXPECT_EQ(LoadKubeconfig(path, "")->server, "https://k");
  const auto two = LoadKubeconfig(path, "two");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->server, "https://l");
  EXPECT_EQ(two->credentials, nullptr);
  EXPECT_EQ(two->default_namespace, "default");
  EXPECT_THAT(LoadKubeconfig(path, "three").status().ToString(),
              HasSubstr("context \"three\" is not there"));
  EXPECT_THAT(LoadKubeconfig(path, "broken").status().ToString(),
              HasSubstr("cluster \"gone\" is not there"));
}

TEST_F(ConfigTest, RefusesWhatItWouldHaveToIgnore) {
  for (const char* user :
       {"{username: me, password: secret}", "{auth-provider: {name: gcp}}", "{as: root}",
        "{token: 12345}", "{client-certificate-data: Q0VSVA==}", "{client-key-data: '*'}",
        "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}",
        "{exec: {apiVersion: client.authentication.k8s.io/v1}}",
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
        "interactiveMode: Always}}"}) {
    const absl::Status status = Load(WriteConfig("config", kServer, user));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << user << ": " << status;
    EXPECT_THAT(status.ToString(), HasSubstr("user \"u\"")) << user;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret")));
  }
  EXPECT_THAT(Load(WriteConfig("config", "{}", "{}")).ToString(), HasSubstr("server: is missing"));
  EXPECT_THAT(
      Load(WriteConfig("config", "{server: 'https://a', proxy-url: 'http://b'}", "{}")).ToString(),
      HasSubstr("proxy-url: is not supported"));
}

TEST_F(ConfigTest, SaysWhereAFileIsMissingOrIsNoKubeconfig) {
  EXPECT_EQ(Load((folder_ / "none").string()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Load(Write("pod", "kind: Pod\n")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Load(Write("bad", "a: b\nc: [\n")).ToString(), HasSubstr("bad:"));
  const absl::Status status = Load(WriteConfig("config", kServer, "{tokenFile: gone}"));
  EXPECT_TRUE(status.ok()) << status;  // it may come; a call says when it does not
  EXPECT_EQ(Load(WriteConfig("config", "{server: 'https://a', certificate-authority: gone}", "{}"))
                .code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ConfigTest, MergesTheFilesOfTheEnvironmentTheFirstWinning) {
  const std::string first = Write("first",
                                  "contexts:\n- {name: a, context: {cluster: k}}\n"
                                  "clusters:\n- {name: k, cluster: {server: 'https://first'}}\n");
  const std::string second = Write("second",
                                   "current-context: a\n"
                                   "contexts:\n- {name: b, context: {cluster: k}}\n"
                                   "clusters:\n- {name: k, cluster: {server: 'https://second'}}\n");
  setenv("KUBECONFIG", fmt::format("{}:{}/gone::{}", first, folder_.string(), second).c_str(), 1);
  const auto config = LoadDefault({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://first");
  EXPECT_TRUE(LoadDefault({.context = "b"}).ok());
}

TEST_F(ConfigTest, LooksWhereKubectlLooks) {
  EXPECT_EQ(LoadDefault({}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(LoadDefault({}).status().ToString(), HasSubstr("home/.kube/config"));
  setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  EXPECT_THAT(LoadDefault({}).status().ToString(), HasSubstr("the pod's service account"));
  WriteConfig("home/.kube/config", "{server: 'https://home'}", "{}");
  EXPECT_EQ(LoadDefault({})->server, "https://home");
  setenv("KUBECONFIG", WriteConfig("env", "{server: 'https://env'}", "{}").c_str(), 1);
  EXPECT_EQ(LoadDefault({})->server, "https://env");
  const std::string named = WriteConfig("named", "{server: 'https://named'}", "{}");
  EXPECT_EQ(LoadDefault({.kubeconfig = named})->server, "https://named");
  setenv("KUBECONFIG", (folder_ / "gone").c_str(), 1);
  EXPECT_EQ(LoadDefault({}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ConfigTest, ReadsAPodsServiceAccount) {
  Write("sa/ca.crt", "CA");
  Write("sa/token", "t1");
  Write("sa/namespace", "blue");
  const auto config = InClusterConfig("10.96.0.1", "443", (folder_ / "sa").string());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://10.96.0.1:443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->default_namespace, "blue");
  EXPECT_EQ(config->credentials->Get()->bearer_token, "t1");
  EXPECT_EQ(config->credentials->Get()->authority_pem, "CA");
  EXPECT_EQ(InClusterConfig("fd00::1", "443", (folder_ / "sa").string())->server,
            "https://[fd00::1]:443");
  EXPECT_FALSE(InClusterConfig("10.96.0.1", "443", (folder_ / "gone").string()).ok());
}

}  // namespace
}  // namespace ringmaster::kube::rest

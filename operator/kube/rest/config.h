// Where the API server is and how to prove who we are: read from a kubeconfig or from a pod's own
// files, as kubectl and client-go read them.
//
//   RM_ASSIGN_OR_RETURN(rest::Config config, rest::LoadDefault({}));
//   RM_ASSIGN_OR_RETURN(auto client, rest::RestClient::Connect(std::move(config), {}));
//
// Certificates and keys are held as PEM text. Proxies are not used: HTTPS_PROXY is ignored, and a
// proxy-url, like everything else in a kubeconfig that would change who we are or where we connect
// and is not understood (auth-provider, username, as), is refused rather than left out.
//
// Errors of the loaders: kNotFound when a file that was named is not there; kInvalidArgument, with
// the file and the field, when what it says cannot be used. No message ever contains a token, a key
// or what a plugin printed on standard output. The loaders block on the disk; they run no plugin.
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_CONFIG_H_
#define RINGMASTER_OPERATOR_KUBE_REST_CONFIG_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/kube/rest/credentials.h"

namespace ringmaster::kube::rest {

struct Config {
  // "https://10.96.0.1:443", "https://[fd00::1]:6443/clusters/a" or "http://127.0.0.1:8001".
  std::string server;
  // Checked against the server's certificate instead of the host in `server`; empty for that host.
  std::string tls_server_name;
  // Certificate authorities that may have signed the server's certificate; the system's own when
  // empty.
  std::string ca_pem;
  // Takes any certificate. For throw-away clusters only.
  bool insecure_skip_tls_verify = false;
  // Null: anonymous. Shared, because copies of a Config stand for the same identity.
  std::shared_ptr<CredentialSource> credentials;
  // Of the context, or the pod's own: where a user who names no namespace works.
  std::string default_namespace = "default";
  // Where this came from, for messages: "/home/ada/.kube/config, context kind", "the pod's service
  // account".
  std::string origin;
};

struct ConfigSource {
  std::string kubeconfig;  // a path; empty: look in the usual places
  std::string context;     // empty: the file's current-context
};

// What kubectl would use, the first that is there:
//   1. source.kubeconfig, which must then exist;
//   2. the files in $KUBECONFIG, joined by colons: entries of the same name are the first file's;
//   3. ~/.kube/config;
//   4. in a pod, LoadInCluster().
// kNotFound, naming the places, when there is none of them.
absl::StatusOr<Config> LoadDefault(const ConfigSource& source);

// One file and one of its contexts. Paths in the file are relative to its folder.
absl::StatusOr<Config> LoadKubeconfig(const std::string& path, const std::string& context);

// The pod's service account: $KUBERNETES_SERVICE_HOST (IPv6 too) and _PORT, and the mounted
// authority and token, which are read again as the kubelet renews them. kNotFound outside of a pod.
absl::StatusOr<Config> LoadInCluster();

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_CONFIG_H_

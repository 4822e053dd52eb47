// load is the plain side of the operator's benchmark: it makes many objects with parallel calls, and
// tells when pods came and ran. The former is what operators are compared with, the latter measures
// all contenders alike.
//
//	load create --kubeconfig K --path /api/v1/namespaces/n/pods --template pod.json --count 800
//	load watch  --kubeconfig K --path /api/v1/namespaces/n/pods --count 800
//
// Both print one JSON object on standard output; watch prints "ready" first, once it watches.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	kubeconfig string
	path       string
	template   string
	count      int
	from       int
	parallel   int
	status     bool
	owners     string
	timeout    time.Duration
}

func main() {
	commands := map[string]func(context.Context, options) error{"create": create, "watch": watch}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fail(fmt.Errorf("usage: load create|watch --kubeconfig FILE --path PATH --count N …"))
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "whose cluster")
	flags.StringVar(&o.path, "path", "", "of the collection: /api/v1/namespaces/default/pods")
	flags.StringVar(&o.template, "template", "", "create: JSON of one object; NUMBER in it becomes the object's number")
	flags.BoolVar(&o.status, "status", false, "create: write the object's status too, in a second call")
	flags.StringVar(&o.owners, "owners", "", "create: JSON list of UIDs; OWNER in the template becomes the one at the object's number")
	flags.IntVar(&o.count, "count", 1, "how many objects")
	flags.IntVar(&o.from, "from", 0, "create: the first one's number")
	flags.IntVar(&o.parallel, "parallel", 16, "create: calls in flight, each over a connection of its own")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "for all of it")
	_ = flags.Parse(os.Args[2:])
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	if err := commands[os.Args[1]](ctx, o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "load:", err)
	os.Exit(1)
}

// server is the API server, reached over at most `connections` connections of HTTP/1.1 that are kept:
// over one of HTTP/2 a client is half as fast.
type server struct {
	host   string
	client *http.Client
}

func connect(kubeconfig string, connections int) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	secure.NextProtos = []string{"http/1.1"}
	transport := &http.Transport{TLSClientConfig: secure, MaxIdleConnsPerHost: connections,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &server{config.Host, &http.Client{Transport: wrapped}}, nil
}

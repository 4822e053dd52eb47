// peer is Kubeflow's training-operator, its PyTorchJob controller alone: as its own main sets it up,
// without the webhooks, which would cost it time, and with flags for the client's limits, which its
// own main leaves at controller-runtime's 20 calls a second.
package main

import (
	"flag"
	"log"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
)

func main() {
	qps := flag.Float64("qps", 0, "calls a second; 0 for the default")
	burst := flag.Int("burst", 0, "calls at once; 0 for the default")
	threads := flag.Int("controller-threads", 1, "jobs at once, as its own main has it")
	flag.StringVar(&config.Config.PyTorchInitContainerImage, "pytorch-init-container-image", config.PyTorchInitContainerImageDefault, "")
	flag.StringVar(&config.Config.PyTorchInitContainerTemplateFile, "pytorch-init-container-template-file",
		config.PyTorchInitContainerTemplateFileDefault, "")
	flag.IntVar(&config.Config.PyTorchInitContainerMaxTries, "pytorch-init-container-max-tries", config.PyTorchInitContainerMaxTriesDefault, "")
	flag.Parse() // controller-runtime adds --kubeconfig
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflowv1.AddToScheme(scheme))
	client := ctrl.GetConfigOrDie()
	if *qps > 0 {
		client.QPS, client.Burst = float32(*qps), *burst
	}
	manager, err := ctrl.NewManager(client, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := pytorch.NewReconciler(manager, common.GenNonGangSchedulerSetupFunc()).SetupWithManager(manager, *threads); err != nil {
		log.Fatal(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}

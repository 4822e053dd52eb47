// Finds what the kubernetes_sd_configs of a Prometheus configuration name, with Prometheus' own code, and writes it as file_sd_configs read it:
// for a Prometheus that was built without, as Debian's is.
//
//	prometheus-discovery CONFIGURATION FOLDER
//
// writes FOLDER/JOB.json for each scrape job, its slashes as underscores, whenever what it finds changes.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"gopkg.in/yaml.v2"
)

// What is read of a configuration.
type configuration struct {
	Jobs []struct {
		Name       string                 `yaml:"job_name"`
		Kubernetes []*kubernetes.SDConfig `yaml:"kubernetes_sd_configs"`
	} `yaml:"scrape_configs"`
}

// A group as file_sd_configs read it.
type group struct {
	Targets []string       `json:"targets"`
	Labels  model.LabelSet `json:"labels"`
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: prometheus-discovery CONFIGURATION FOLDER")
	}
	if err := discover(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func discover(file, folder string) error {
	wanted, err := read(file)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return err
	}
	manager := discovery.NewManager(context.Background(), nil, registry, metrics, discovery.Updatert(100*time.Millisecond))
	go manager.Run()
	if err := manager.ApplyConfig(wanted); err != nil {
		return err
	}
	for found := range manager.SyncCh() {
		for job, groups := range found {
			if err := write(filepath.Join(folder, strings.ReplaceAll(job, "/", "_")+".json"), flatten(groups)); err != nil {
				return err
			}
		}
	}
	return nil
}

func read(file string) (map[string]discovery.Configs, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var content configuration
	if err := yaml.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	wanted := map[string]discovery.Configs{}
	for _, job := range content.Jobs {
		for _, each := range job.Kubernetes {
			wanted[job.Name] = append(wanted[job.Name], each)
		}
	}
	return wanted, nil
}

// A group for each target: file_sd_configs know no labels of single targets but the address.
func flatten(groups []*targetgroup.Group) []group {
	flat := []group{}
	for _, each := range groups {
		for _, target := range each.Targets {
			labels := each.Labels.Merge(target)
			address := string(labels[model.AddressLabel])
			delete(labels, model.AddressLabel)
			flat = append(flat, group{[]string{address}, labels})
		}
	}
	return flat
}

func write(path string, groups []group) error {
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".partial", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".partial", path)
}

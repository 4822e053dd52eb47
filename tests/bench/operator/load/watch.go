package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

type pod struct {
	Metadata struct {
		Name, UID, ResourceVersion string
	}
	Status struct{ Phase string }
}

type tally struct {
	seen, running                       map[string]bool // by UID
	firstCreated, lastCreated, lastRuns time.Time
	deleted                             int
}

// watch tells when the first and the last of `count` pods appeared, and when the last one ran. It
// fails when there are more, or when one goes: a contender that makes pods twice is not fast.
func watch(ctx context.Context, o options) error {
	api, err := connect(o.kubeconfig, 2)
	if err != nil {
		return err
	}
	version, err := api.listVersion(ctx, o.path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	t := tally{seen: map[string]bool{}, running: map[string]bool{}}
	for len(t.running) < o.count {
		if err := api.follow(ctx, o, &version, &t); err != nil {
			return fmt.Errorf("%d of %d pods created, %d running: %w", len(t.seen), o.count, len(t.running), err)
		}
	}
	if len(t.seen) != o.count || t.deleted != 0 {
		return fmt.Errorf("%d pods were wanted, %d came and %d went", o.count, len(t.seen), t.deleted)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"pods":           o.count,
		"first":          float64(t.firstCreated.UnixMicro()) / 1e6,
		"createdSeconds": t.lastCreated.Sub(t.firstCreated).Seconds(),
		"runningSeconds": t.lastRuns.Sub(t.firstCreated).Seconds(),
	})
}

func (api *server) listVersion(ctx context.Context, path string) (string, error) {
	answer, err := api.send(ctx, http.MethodGet, path+"?limit=1", "", nil)
	if err != nil {
		return "", err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return "", err
	}
	if len(list.Items) != 0 {
		return "", fmt.Errorf("%s: there are pods already", path)
	}
	return list.Metadata.ResourceVersion, nil
}

// follow reads one watch until its end, which the API server brings about under load, or until all run.
func (api *server) follow(ctx context.Context, o options, version *string, t *tally) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.host+o.path+"?watch=true&resourceVersion="+*version, nil)
	if err != nil {
		return err
	}
	response, err := api.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("watch: %s", response.Status)
	}
	decoder := json.NewDecoder(response.Body)
	for len(t.running) < o.count {
		var event struct {
			Type   string
			Object pod
		}
		if err := decoder.Decode(&event); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if event.Type == "ERROR" {
			return fmt.Errorf("the watch failed")
		}
		*version = event.Object.Metadata.ResourceVersion
		t.count(event.Type, &event.Object)
	}
	return nil
}

func (t *tally) count(kind string, object *pod) {
	now, uid := time.Now(), object.Metadata.UID
	if kind == "DELETED" {
		t.deleted++
		return
	}
	if !t.seen[uid] {
		if t.seen[uid] = true; len(t.seen) == 1 {
			t.firstCreated = now
		}
		t.lastCreated = now
	}
	if object.Status.Phase == "Running" && !t.running[uid] {
		t.running[uid] = true
		t.lastRuns = now
	}
}

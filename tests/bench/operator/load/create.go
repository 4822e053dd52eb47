package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// create posts count objects of the template, `parallel` at a time, and stops at the first refusal.
func create(ctx context.Context, o options) error {
	template, err := os.ReadFile(o.template)
	if err != nil {
		return err
	}
	api, err := connect(o.kubeconfig, o.parallel)
	if err != nil {
		return err
	}
	var owners []string
	if o.owners != "" {
		text, err := os.ReadFile(o.owners)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &owners); err != nil || len(owners) < o.from+o.count {
			return fmt.Errorf("%s: not a UID for each object", o.owners)
		}
	}
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, o.parallel)
	start := time.Now()
	for range o.parallel {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < o.count; i = int(next.Add(1)) - 1 {
				body := bytes.ReplaceAll(template, []byte("NUMBER"), []byte(strconv.Itoa(o.from+i)))
				if owners != nil {
					body = bytes.ReplaceAll(body, []byte("OWNER"), []byte(owners[o.from+i]))
				}
				if err := api.createOne(ctx, o.path, body, o.status); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	if err := <-failures; err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"created": o.count, "seconds": time.Since(start).Seconds()})
}

func (api *server) createOne(ctx context.Context, path string, body []byte, withStatus bool) error {
	answer, err := api.send(ctx, http.MethodPost, path, "application/json", body)
	if err != nil || !withStatus {
		return err
	}
	var object struct {
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(answer, &object); err != nil {
		return err
	}
	var wanted struct{ Status json.RawMessage }
	if err := json.Unmarshal(body, &wanted); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": wanted.Status})
	if err != nil {
		return err
	}
	_, err = api.send(ctx, http.MethodPatch, path+"/"+object.Metadata.Name+"/status", "application/merge-patch+json", patch)
	return err
}

func (api *server) send(ctx context.Context, method, path, kind string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, api.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Accept", "application/json")
	response, err := api.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %.500s", method, path, response.Status, answer)
	}
	return answer, nil
}

// Command server records what a real kube-apiserver makes of our test objects: each is created,
// and the object that is read back (without what differs from run to run) and its Table are kept.
//
// Usage: go run ./oracle/server -server https://127.0.0.1:6443 -token TOKEN
//
// With -folder ../../../apiserver/schema/tests/data/import, and -published true, for the objects of
// types that can be imported; also kept are then the discovery and the OpenAPI documents, without
// their descriptions and paths. The server must run with --runtime-config=api/all=true and
// --disable-admission-plugins=ServiceAccount.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
)

// input is one object to create. Path is that of its list. Status is written after that; a deleted
// object is held by a finalizer of its own.
type input struct {
	Path    string         `json:"path"`
	Object  map[string]any `json:"object"`
	Status  map[string]any `json:"status"`
	Deleted bool           `json:"deleted"`
}

type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Format   string `json:"format"`
	Priority int    `json:"priority"`
}

type table struct {
	Columns []column `json:"columnDefinitions"`
	Rows    []struct {
		Cells []any `json:"cells"`
	} `json:"rows"`
}

type answer struct {
	Object  map[string]any `json:"object"`
	Columns []column       `json:"columns"`
	Cells   []any          `json:"cells"`
}

type client struct {
	server, token string
	http          *http.Client
}

func main() {
	server := flag.String("server", "https://127.0.0.1:6443", "address of the kube-apiserver")
	token := flag.String("token", "", "bearer token of an administrator")
	folder := flag.String("folder", "../../../apiserver/schema/tests/data", "objects.json is read, served.json written")
	published := flag.Bool("published", false, "write discovery.json and openapi.json too")
	flag.Parse()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	c := client{server: *server, token: *token, http: &http.Client{Transport: insecure}}
	if err := run(c, *folder); err != nil {
		log.Fatal(err)
	}
	if *published {
		if err := c.writePublished(*folder); err != nil {
			log.Fatal(err)
		}
	}
}

func run(c client, folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "objects.json"))
	if err != nil {
		return err
	}
	var inputs []input
	if err := json.Unmarshal(text, &inputs); err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, in := range inputs {
		answer, err := c.ask(in)
		if err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(answer); err != nil {
			return err
		}
		out.Write(bytes.TrimSpace(line.Bytes()))
		if i+1 < len(inputs) {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return os.WriteFile(filepath.Join(folder, "served.json"), out.Bytes(), 0o644)
}

func (c client) ask(in input) (answer, error) {
	var result answer
	name := in.Object["metadata"].(map[string]any)["name"].(string)
	path := in.Path + "/" + url.PathEscape(name)
	// What an earlier run left is in the way.
	if err := c.remove(path); err != nil {
		return result, err
	}
	var object map[string]any
	if err := c.send("POST", in.Path, in.Object, &object); err != nil {
		return result, err
	}
	if in.Status != nil {
		object["status"] = in.Status
		if err := c.send("PUT", path+"/status", object, nil); err != nil {
			return result, err
		}
	}
	if in.Deleted {
		if err := c.do("DELETE", path, "application/json", nil, nil); err != nil {
			return result, err
		}
	}
	object = nil
	if err := c.do("GET", path, "application/json", nil, &object); err != nil {
		return result, err
	}
	var shown table
	if err := c.do("GET", path, "application/json;as=Table;v=v1;g=meta.k8s.io", nil, &shown); err != nil {
		return result, err
	}
	meta := object["metadata"].(map[string]any)
	for _, volatile := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(meta, volatile)
	}
	result.Object, result.Columns = object, shown.Columns
	if len(shown.Rows) == 1 {
		result.Cells = shown.Rows[0].Cells
	}
	return result, c.remove(path)
}

// remove deletes an object if it is there, whatever finalizers and grace it has.
func (c client) remove(path string) error {
	var object map[string]any
	if err := c.do("GET", path, "application/json", nil, &object); err != nil {
		return nil // It isn't there; anything else shows at the next request.
	}
	now := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
	if err := c.send("DELETE", path, now, nil); err != nil {
		return err
	}
	object = nil
	if err := c.do("GET", path, "application/json", nil, &object); err != nil {
		return nil
	}
	delete(object["metadata"].(map[string]any), "finalizers")
	return c.send("PUT", path, object, nil)
}

func (c client) send(method, path string, object map[string]any, into any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.do(method, path, "application/json", body, into)
}

func (c client) do(method, path, accept string, body []byte, into any) error {
	request, err := http.NewRequest(method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	gone := method == "DELETE" && response.StatusCode == http.StatusNotFound
	if response.StatusCode >= 300 && !gone {
		return fmt.Errorf("%s %s: %s", method, path, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// Command server records what a real kube-apiserver makes of our test objects: each is created,
// and the object that is read back (without what differs from run to run) and its Table are kept.
//
// Usage: go run ./oracle/server -server https://127.0.0.1:6443 -token TOKEN
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
	"os"
	"path/filepath"
)

// input is one object to create. Path is that of its list.
type input struct {
	Path   string         `json:"path"`
	Object map[string]any `json:"object"`
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
	flag.Parse()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	c := client{server: *server, token: *token, http: &http.Client{Transport: insecure}}
	if err := run(c, *folder); err != nil {
		log.Fatal(err)
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
	path := in.Path + "/" + name
	// What an earlier run left is in the way.
	if err := c.do("DELETE", path, "application/json", nil, nil); err != nil {
		return result, err
	}
	body, err := json.Marshal(in.Object)
	if err != nil {
		return result, err
	}
	var object map[string]any
	if err := c.do("POST", in.Path, "application/json", body, nil); err != nil {
		return result, err
	}
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
	return result, c.do("DELETE", path, "application/json", nil, nil)
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

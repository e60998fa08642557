package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kept are the groups whose types can be imported; those of older versions are there to be refused.
var kept = []string{
	"api/v1", "apis/apps/v1", "apis/autoscaling/v1", "apis/autoscaling/v2", "apis/batch/v1",
	"apis/coordination.k8s.io/v1alpha2", "apis/coordination.k8s.io/v1beta1", "apis/discovery.k8s.io/v1",
	"apis/networking.k8s.io/v1", "apis/networking.k8s.io/v1beta1", "apis/node.k8s.io/v1",
	"apis/policy/v1", "apis/rbac.authorization.k8s.io/v1", "apis/resource.k8s.io/v1",
	"apis/resource.k8s.io/v1alpha3", "apis/resource.k8s.io/v1beta1", "apis/resource.k8s.io/v1beta2",
	"apis/scheduling.k8s.io/v1", "apis/storage.k8s.io/v1", "apis/storage.k8s.io/v1beta1",
}

// writePublished keeps what the server says of its types: discovery, and the component schemas. A
// component that several documents have is written once, in `shared`.
func (c client) writePublished(folder string) error {
	documents := map[string]map[string]any{}
	seen := map[string]int{}
	for _, path := range kept {
		var document struct {
			Components struct {
				Schemas map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := c.do("GET", "/openapi/v3/"+path, "application/json", nil, &document); err != nil {
			return err
		}
		documents[path] = document.Components.Schemas
		for name, schema := range document.Components.Schemas {
			withoutDescriptions(schema)
			seen[name]++
		}
	}
	shared := map[string]any{}
	names := map[string][]string{}
	for path, schemas := range documents {
		for name, schema := range schemas {
			if seen[name] > 1 {
				shared[name] = schema
				names[path] = append(names[path], name)
				delete(schemas, name)
			}
		}
		slices.Sort(names[path])
	}
	all := map[string]any{"documents": documents, "sharedBy": names, "shared": shared}
	if err := writeFile(filepath.Join(folder, "openapi.json"), all); err != nil {
		return err
	}
	var lists []json.RawMessage
	for _, root := range []string{"/api", "/apis"} {
		var list json.RawMessage
		accept := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		if err := c.do("GET", root, accept, nil, &list); err != nil {
			return err
		}
		lists = append(lists, list)
	}
	var list json.RawMessage
	if err := c.do("GET", "/apis/apps/v1", "application/json", nil, &list); err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, "discovery.json"), map[string]any{"groups": lists, "apps": list})
}

// withoutDescriptions removes texts, which aren't ours. A field may be called `description`; its
// value is then a schema and not a text.
func withoutDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, isText := value["description"].(string); isText {
			delete(value, "description")
		}
		for _, inner := range value {
			withoutDescriptions(inner)
		}
	case []any:
		for _, inner := range value {
			withoutDescriptions(inner)
		}
	}
}

// writeFile writes one member of the first two levels a line, so that differences can be read.
func writeFile(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	depth, quoted := 0, false
	for i, char := range text {
		if char == '"' && (i == 0 || text[i-1] != '\\') {
			quoted = !quoted
		}
		if !quoted && strings.ContainsRune("}]", rune(char)) {
			depth--
		}
		out.WriteByte(char)
		if quoted {
			continue
		}
		if strings.ContainsRune("{[", rune(char)) {
			depth++
		}
		if char == ',' && depth <= 3 {
			out.WriteByte('\n')
		}
	}
	out.WriteByte('\n')
	return os.WriteFile(path, out.Bytes(), 0o644)
}

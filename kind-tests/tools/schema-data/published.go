package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// release is the module whose published documents describe the same API as go.mod's modules.
const release = "k8s.io/kubernetes@v1.36.3"

// published is the part of an OpenAPI schema that holds facts.
type published struct {
	Properties   map[string]*published `json:"properties"`
	Items        *published            `json:"items"`
	Values       *published            `json:"additionalProperties"`
	Default      json.RawMessage       `json:"default"`
	Enum         []json.RawMessage     `json:"enum"`
	Required     []string              `json:"required"`
	Strategy     string                `json:"x-kubernetes-patch-strategy"`
	MergeKey     string                `json:"x-kubernetes-patch-merge-key"`
	ListType     string                `json:"x-kubernetes-list-type"`
	ListMapKeys  []string              `json:"x-kubernetes-list-map-keys"`
	MapType      string                `json:"x-kubernetes-map-type"`
	Unions       json.RawMessage       `json:"x-kubernetes-unions"`
	PreserveFlag bool                  `json:"x-kubernetes-preserve-unknown-fields"`
}

// loadPublished reads the component schemas of every document that the release ships.
func loadPublished() (map[string]*published, error) {
	raw, err := exec.Command("go", "mod", "download", "-json", release).Output()
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", release, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(raw, &module); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(module.Dir, "api/openapi-spec/v3/*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no OpenAPI documents in %s", module.Dir)
	}
	all := map[string]*published{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var doc struct {
			Components struct {
				Schemas map[string]*published `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for name, schema := range doc.Components.Schemas {
			all[name] = schema
		}
	}
	return all, nil
}

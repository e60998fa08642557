// Command schema-data writes what kcp-rs knows of the built-in Kubernetes types as compact JSON.
//
// Two sources are joined: the Go types (JSON names, presence rules, protobuf numbers, by
// reflection) and the OpenAPI v3 documents that a kube-apiserver of the same release publishes
// (required fields, defaults, patch and list markers). Only facts are kept, never a description.
//
// There are two sets: the kinds that the server serves by itself (`types`), and all others that the
// release serves (`known`), which are read when a server holds such a type as an imported one.
//
// Usage: go run . -out ../../../apiserver/schema/data
//
// To serve a further kind, add a line to `wanted` in groups.go.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func main() {
	out := flag.String("out", "../../../apiserver/schema/data", "folder of the data files")
	flag.Parse()
	if err := run(*out); err != nil {
		log.Fatal(err)
	}
}

func run(out string) error {
	published, err := loadPublished()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range builders {
		utilruntime.Must(add(scheme))
	}
	g := newGenerator(published)
	for _, w := range wanted {
		for _, kind := range w.kinds {
			gvk := w.gv.WithKind(kind)
			t, ok := scheme.AllKnownTypes()[gvk]
			if !ok {
				return fmt.Errorf("no Go type for %s", gvk)
			}
			facts, err := g.add(t)
			if err != nil {
				return err
			}
			facts.Kinds = append(facts.Kinds, [3]string{gvk.Group, gvk.Version, gvk.Kind})
		}
	}
	for _, t := range extraTypes {
		if _, err := g.add(t); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(out, "types"), g.types); err != nil {
		return err
	}
	known := newGenerator(published)
	if err := known.addKnown(); err != nil {
		return err
	}
	return write(filepath.Join(out, "known"), known.types)
}

// write puts the types of each Go package into one file, one type a line.
func write(out string, types map[reflect.Type]*typeFacts) error {
	files := map[string][]*typeFacts{}
	for _, facts := range types {
		slices.SortFunc(facts.Kinds, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
		pkg := facts.Name[:strings.LastIndex(facts.Name, ".")]
		files[pkg] = append(files[pkg], facts)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for pkg, list := range files {
		slices.SortFunc(list, func(a, b *typeFacts) int { return strings.Compare(a.Name, b.Name) })
		var text bytes.Buffer
		text.WriteString("[\n")
		for i, facts := range list {
			line, err := encode(facts)
			if err != nil {
				return err
			}
			text.Write(line)
			if i+1 < len(list) {
				text.WriteByte(',')
			}
			text.WriteByte('\n')
		}
		text.WriteString("]\n")
		if err := os.WriteFile(filepath.Join(out, pkg+".json"), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(line.Bytes()), nil
}

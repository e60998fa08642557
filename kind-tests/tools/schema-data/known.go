package main

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"kcp-rs/kind-tests/tools/schema-data/kinds"
)

// addKnown describes every kind that the release publishes and that `wanted` doesn't list.
func (g *generator) addKnown() error {
	scheme := runtime.NewScheme()
	for _, add := range kinds.Builders {
		utilruntime.Must(add(scheme))
	}
	listed := map[[3]string]bool{}
	for _, w := range wanted {
		for _, kind := range w.kinds {
			listed[[3]string{w.gv.Group, w.gv.Version, kind}] = true
		}
	}
	for gvk, t := range scheme.AllKnownTypes() {
		key := [3]string{gvk.Group, gvk.Version, gvk.Kind}
		if !strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || listed[key] {
			continue
		}
		if g.published[modelName(t)] == nil {
			continue
		}
		facts, err := g.add(t)
		if err != nil {
			return err
		}
		facts.Kinds = append(facts.Kinds, key)
	}
	return nil
}

func newGenerator(published map[string]*published) *generator {
	return &generator{published: published, types: map[reflect.Type]*typeFacts{}}
}

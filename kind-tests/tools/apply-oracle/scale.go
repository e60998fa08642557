package main

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// through takes managed fields down to a Scale and back. Without fields of the Scale, it is left as
// it came.
func through(s *Scale) {
	var object, scale []metav1.ManagedFieldsEntry
	check(json.Unmarshal(s.Object, &object))
	paths := managedfields.ResourcePathMappings{}
	for version, path := range s.Paths {
		paths[version] = nil
		if path != nil {
			place := fieldpath.Path{}
			for _, name := range strings.Split(strings.TrimPrefix(*path, "."), ".") {
				place = append(place, fieldpath.FieldNameElement(name))
			}
			paths[version] = place
		}
	}
	version, err := schema.ParseGroupVersion(s.Version)
	check(err)
	handler := managedfields.NewScaleHandler(object, version, paths)
	down, err := handler.ToSubresource()
	check(err)
	s.Down = json.RawMessage(encode(down))
	scale = down
	if s.Scale != nil {
		scale = nil
		check(json.Unmarshal(s.Scale, &scale))
	}
	back, err := handler.ToParent(scale)
	check(err)
	s.Back = json.RawMessage(encode(back))
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const group = "test.kcp.io"

// kind is one type in its versions. It is its own converter: versions differ by their names, and
// v2 calls spec.old spec.new.
type kind struct {
	name     string
	versions map[string]bool
	types    managedfields.TypeConverter
}

func newKind(name string, versions map[string]json.RawMessage) *kind {
	k := &kind{name: name, versions: map[string]bool{}}
	models := map[string]*spec.Schema{}
	for version, text := range versions {
		k.versions[version] = true
		model := &spec.Schema{}
		check(json.Unmarshal(text, model))
		model.AddExtension("x-kubernetes-group-version-kind", []any{
			map[string]any{"group": group, "version": version, "kind": "Thing"},
		})
		models[group+"."+version+".Thing"] = model
	}
	var err error
	k.types, err = managedfields.NewTypeConverter(models, false)
	check(err)
	return k
}

func (k *kind) Default(runtime.Object) {}

func (k *kind) New(of schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of)
	return object, nil
}

func (k *kind) Convert(in, out, context any) error { return errors.New("not used") }

func (k *kind) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (k *kind) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	version, ok := to.(schema.GroupVersion)
	if !ok {
		return nil, errors.New("no version")
	}
	if version.Group != group || !k.versions[version.Version] {
		of := version.WithKind("Thing")
		return nil, runtime.NewNotRegisteredErrForKind("oracle", of)
	}
	object := in.(*unstructured.Unstructured).DeepCopy()
	from := object.GroupVersionKind().Version
	if from != version.Version {
		if spec, ok := object.Object["spec"].(map[string]any); ok {
			if version.Version == "v2" {
				move(spec, "old", "new")
			} else if from == "v2" {
				move(spec, "new", "old")
			}
		}
	}
	object.SetGroupVersionKind(version.WithKind("Thing"))
	return object, nil
}

func move(fields map[string]any, from, to string) {
	if value, ok := fields[from]; ok {
		delete(fields, from)
		fields[to] = value
	}
}

// resetOf is what an endpoint resets: status of the main one, everything else of the other.
func (k *kind) resetOf(subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	fields := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if subresource == "status" {
		fields = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	}
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for version := range k.versions {
		filters[fieldpath.APIVersion(group+"/"+version)] = fieldpath.NewExcludeSetFilter(fields)
	}
	return filters
}

func (k *kind) manager(version, subresource string) *managedfields.FieldManager {
	of := schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		k.types, k, k, k, of, of.GroupVersion(), subresource, k.resetOf(subresource))
	check(err)
	return manager
}

// run makes each step on the outcome of those before.
func run(sequence *Sequence, kinds map[string]*kind) {
	var live *unstructured.Unstructured
	for i := range sequence.Steps {
		step := &sequence.Steps[i]
		of := kinds[sequence.Type]
		if step.Type != "" {
			of = kinds[step.Type]
		}
		if of == nil {
			log.Fatalf("%s: no such type", sequence.Name)
		}
		version := step.Version
		if version == "" {
			version = "v1"
		}
		now := metav1.Time{Time: time.Date(2020, 1, 1, 0, 0, i, 0, time.UTC)}
		next, err := write(of, version, step, live)
		if err != nil {
			step.Outcome = failure(err)
			continue
		}
		settle(next, now)
		live = next
		step.Outcome = success(next)
	}
}

func write(of *kind, version string, step *Step, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
	var before runtime.Object
	if live == nil || step.Do == "create" {
		before, _ = of.New(gvk)
	} else {
		var err error
		if before, err = of.ConvertToVersion(live, gvk.GroupVersion()); err != nil {
			return nil, err
		}
	}
	given := &unstructured.Unstructured{Object: decode(step.Object, step.Do == "apply")}
	manager := of.manager(version, step.Subresource)
	if step.Do == "apply" {
		after, err := manager.Apply(before, given, step.By, step.Force)
		if err != nil {
			return nil, err
		}
		return after.(*unstructured.Unstructured), nil
	}
	return manager.UpdateNoErrors(before, given, step.By).(*unstructured.Unstructured), nil
}

// decode reads a body: of an apply, all numbers are floats.
func decode(text []byte, applied bool) map[string]any {
	object := map[string]any{}
	if applied {
		check(json.Unmarshal(text, &object))
		return object
	}
	of := &unstructured.Unstructured{}
	check(of.UnmarshalJSON(text))
	return of.Object
}

// settle gives what the step has timed the time of the step, and an object that is new an identity.
func settle(object *unstructured.Unstructured, now metav1.Time) {
	if object.GetUID() == "" {
		object.SetUID("u")
	}
	fields := object.GetManagedFields()
	for i := range fields {
		if fields[i].Time != nil && fields[i].Time.Year() > 2020 {
			fields[i].Time = &now
		}
	}
	object.SetManagedFields(fields)
}

func success(object *unstructured.Unstructured) *Outcome {
	outcome := &Outcome{}
	for _, entry := range object.GetManagedFields() {
		// Unstructured objects hold sets as maps, which Go sorts by name: it is read once more.
		outcome.Fields = append(outcome.Fields, reencode(string(entry.FieldsV1.GetRawBytes())).Out)
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(object.Object))
	outcome.Object = bytes.TrimSpace(buffer.Bytes())
	return outcome
}

func failure(err error) *Outcome {
	outcome := &Outcome{Class: "failed", Error: sorted(err.Error())}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return outcome
	}
	outcome.Class = string(status.ErrStatus.Reason)
	if details := status.ErrStatus.Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type != metav1.CauseTypeFieldManagerConflict {
				log.Fatal(fmt.Sprint("another cause: ", cause))
			}
			outcome.Causes = append(outcome.Causes, [2]string{cause.Message, cause.Field})
		}
	}
	// Upstream has them in the order of a Go map.
	sort.SliceStable(outcome.Causes, func(i, j int) bool { return outcome.Causes[i][0] < outcome.Causes[j][0] })
	return outcome
}

// sorted puts the problems of an object in order: upstream finds them in the order of Go maps.
func sorted(text string) string {
	first, problems, found := strings.Cut(text, "errors:\n")
	if !found {
		return text
	}
	lines := strings.Split(problems, "\n")
	sort.Strings(lines)
	return first + "errors:\n" + strings.Join(lines, "\n")
}

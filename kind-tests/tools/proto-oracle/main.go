// Command proto-oracle encodes objects with Kubernetes' own Go types.
//
// For every kind in the data files of the crate `schema` it makes an object with only zero values
// and one with every field set; it adds the objects of samples.json, and writes the protobuf bytes
// and the JSON of each, as Go has them, into a golden file:
//
//	S=../../../apiserver/schema
//	D=$S/tests/data/proto
//	go run . -data $S/data/types -samples $D/samples.json -out $D/golden.json
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Answer is one object: its message in protobuf, and its JSON after a journey through it.
type Answer struct {
	Name       string          `json:"name"`
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Raw        []byte          `json:"raw"`
	Object     json.RawMessage `json:"object"`
	// Again is the message of what Raw decodes to, where that isn't Raw itself.
	Again []byte `json:"again,omitempty"`
	// Body is the message in its envelope, Frame a watch event that carries the body.
	Body  []byte `json:"body,omitempty"`
	Frame []byte `json:"frame,omitempty"`
}

// Sample is an object in JSON.
type Sample struct {
	Name   string          `json:"name"`
	Object json.RawMessage `json:"object"`
}

type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

var meta = []message{
	&metav1.APIGroup{}, &metav1.APIGroupList{}, &metav1.APIResourceList{}, &metav1.APIVersions{},
	&metav1.CreateOptions{}, &metav1.DeleteOptions{}, &metav1.GetOptions{}, &metav1.ListOptions{},
	&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}, &metav1.PatchOptions{},
	&metav1.Status{}, &metav1.UpdateOptions{},
}

func main() {
	data := flag.String("data", "", "folder with the data files of the types")
	samples := flag.String("samples", "", "file with objects in JSON")
	out := flag.String("out", "", "golden file to write")
	flag.Parse()

	scheme := newScheme()
	var answers []Answer
	for _, gvk := range kinds(*data) {
		object := instance(scheme, gvk)
		if object == nil {
			fmt.Println("not a type of Go:", gvk)
			continue
		}
		answers = append(answers, answer("zero", gvk, object))
		full := reflect.New(reflect.TypeOf(object).Elem()).Interface().(message)
		(&filler{}).fill(reflect.ValueOf(full).Elem())
		answers = append(answers, answer("full", gvk, full))
	}
	for _, sample := range readSamples(*samples) {
		var head metav1.TypeMeta
		check(json.Unmarshal(sample.Object, &head))
		gvk := head.GroupVersionKind()
		object := instance(scheme, gvk)
		check(json.Unmarshal(sample.Object, object))
		a := answer(sample.Name, gvk, object)
		a.envelope(scheme, object)
		answers = append(answers, a)
	}
	var lines []string
	for _, a := range answers {
		line, err := json.Marshal(a)
		check(err)
		lines = append(lines, string(line))
	}
	body := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	check(os.WriteFile(*out, []byte(body), 0o644))
}

func answer(name string, gvk schema.GroupVersionKind, object message) Answer {
	// The kind is no part of the message: the envelope has it.
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	raw, err := object.Marshal()
	check(err)
	back := reflect.New(reflect.TypeOf(object).Elem()).Interface().(message)
	check(back.Unmarshal(raw))
	again, err := back.Marshal()
	check(err)
	if bytes.Equal(raw, again) {
		again = nil
	}
	back.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(back)
	check(err)
	version, kind := gvk.ToAPIVersionAndKind()
	return Answer{Name: name, APIVersion: version, Kind: kind, Raw: raw, Object: text, Again: again}
}

func (a *Answer) envelope(scheme *runtime.Scheme, object message) {
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(a.APIVersion, a.Kind))
	var body bytes.Buffer
	check(protobuf.NewSerializer(scheme, scheme).Encode(object, &body))
	a.Body = body.Bytes()
	event := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: a.Body}}
	raw, err := event.Marshal()
	check(err)
	a.Frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

func instance(scheme *runtime.Scheme, gvk schema.GroupVersionKind) message {
	for _, object := range meta {
		if gvk.Kind == reflect.TypeOf(object).Elem().Name() {
			return reflect.New(reflect.TypeOf(object).Elem()).Interface().(message)
		}
	}
	object, err := scheme.New(gvk)
	if err != nil {
		return nil
	}
	found, _ := object.(message)
	return found
}

func kinds(folder string) []schema.GroupVersionKind {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	check(err)
	sort.Strings(files)
	var all []schema.GroupVersionKind
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		var types []struct{ Kinds [][3]string }
		check(json.Unmarshal(text, &types))
		for _, t := range types {
			for _, k := range t.Kinds {
				all = append(all, schema.GroupVersionKind{Group: k[0], Version: k[1], Kind: k[2]})
			}
		}
	}
	return all
}

func readSamples(file string) []Sample {
	text, err := os.ReadFile(file)
	check(err)
	var samples []Sample
	check(json.Unmarshal(text, &samples))
	return samples
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme, rbacv1.AddToScheme,
		apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		check(add(scheme))
	}
	return scheme
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

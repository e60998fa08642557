// Command patch-oracle answers patch cases as kube-apiserver's own libraries do.
//
// It reads cases (cases.json beside the tests of the crate `patch`), adds random ones made from a
// fixed seed, applies each with upstream's implementation, and writes what came out, together with
// the merge metadata of the types used, as a golden file:
//
//	D=../../../apiserver/patch/tests/data
//	go run . -cases $D/cases.json -out $D/golden.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// Case is one document and one patch. Type is json, merge, or the name of a root type.
type Case struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Doc   json.RawMessage `json:"doc"`
	Patch json.RawMessage `json:"patch"`
}

// Answer is a case and what upstream makes of it: a result, or an error and its class.
type Answer struct {
	Case
	Result  json.RawMessage `json:"result,omitempty"`
	Class   string          `json:"class,omitempty"`
	Error   string          `json:"error,omitempty"`
	Unknown []string        `json:"unknown,omitempty"`
}

// Field is the merge metadata of one field: strategy, merge key, and the type behind it.
type Field struct {
	Strategy string `json:"strategy,omitempty"`
	Key      string `json:"key,omitempty"`
	Type     string `json:"type,omitempty"`
}

// Golden is the whole output.
type Golden struct {
	Types   map[string]map[string]Field `json:"types"`
	Answers []Answer                    `json:"answers"`
}

// Widget has a field of every sort that merges in a way of its own.
type Widget struct {
	Name    string            `json:"name,omitempty"`
	Size    int64             `json:"size,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Parts   []Part            `json:"parts,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	Tags    []string          `json:"tags,omitempty" patchStrategy:"merge"`
	Ports   []Part            `json:"ports,omitempty"`
	Words   []string          `json:"words,omitempty"`
	Inner   *Widget           `json:"inner,omitempty"`
	Swapped *Widget           `json:"swapped,omitempty" patchStrategy:"replace"`
}

// Part is an item of a list of objects.
type Part struct {
	Name  string   `json:"name,omitempty"`
	Value int64    `json:"value,omitempty"`
	Tags  []string `json:"tags,omitempty" patchStrategy:"merge"`
	Parts []Part   `json:"parts,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// marshaler marks the structs that are scalars in JSON.
var marshaler = reflect.TypeFor[json.Marshaler]()

var roots = map[string]any{
	"Widget":              Widget{},
	"Deployment":          appsv1.Deployment{},
	"Service":             corev1.Service{},
	"ServiceAccount":      corev1.ServiceAccount{},
	"ConfigMap":           corev1.ConfigMap{},
	"PodDisruptionBudget": policyv1.PodDisruptionBudget{},
}

func main() {
	in := flag.String("cases", "", "file with cases")
	out := flag.String("out", "", "golden file to write")
	flag.Parse()
	text, err := os.ReadFile(*in)
	if err != nil {
		log.Fatal(err)
	}
	var cases []Case
	if err := json.Unmarshal(text, &cases); err != nil {
		log.Fatal(err)
	}
	cases = append(cases, randomCases(rand.New(rand.NewSource(7)))...)
	golden := Golden{Types: map[string]map[string]Field{}}
	for name, root := range roots {
		describe(name, reflect.TypeOf(root), golden.Types)
	}
	var lines []string
	for _, c := range cases {
		line, err := json.Marshal(answer(c))
		if err != nil {
			log.Fatal(c.Name, err)
		}
		lines = append(lines, string(line))
	}
	types, err := json.Marshal(golden.Types)
	if err != nil {
		log.Fatal(err)
	}
	body := fmt.Sprintf("{\"types\":%s,\n\"answers\":[\n%s\n]}\n", types, strings.Join(lines, ",\n"))
	if err := os.WriteFile(*out, []byte(body), 0o644); err != nil {
		log.Fatal(err)
	}
}

func answer(c Case) (a Answer) {
	a.Case = c
	defer func() {
		if recover() != nil {
			a.Class = "panic"
		}
	}()
	var err error
	switch c.Type {
	case "json":
		a.Unknown, a.Result, err = applyJSON(c)
	case "merge":
		a.Result, err = jsonpatch.MergePatch(c.Doc, c.Patch)
	default:
		a.Result, err = applyStrategic(c)
	}
	if err != nil {
		a.Result = nil
		a.Error = err.Error()
		a.Class = class(c.Type, err)
	}
	return a
}

func applyJSON(c Case) (unknown []string, result []byte, err error) {
	var typed []struct {
		Op    string          `json:"op"`
		From  string          `json:"from"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	strict, err := kjson.UnmarshalStrict(c.Patch, &typed)
	if err != nil {
		return nil, nil, malformed{err}
	}
	for _, e := range strict {
		unknown = append(unknown, e.Error())
	}
	patch, err := jsonpatch.DecodePatch(c.Patch)
	if err != nil {
		return unknown, nil, malformed{err}
	}
	result, err = patch.Apply(c.Doc)
	return unknown, result, err
}

func applyStrategic(c Case) ([]byte, error) {
	doc, patch := map[string]any{}, map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.Doc, &doc); err != nil {
		return nil, malformed{err}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.Patch, &patch); err != nil {
		return nil, malformed{err}
	}
	result, err := strategicpatch.StrategicMergeMapPatch(doc, patch, roots[c.Type])
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

type malformed struct{ error }

// class says how kube-apiserver answers an error: malformed (400), failed (422) or other (500).
func class(kind string, err error) string {
	if _, ok := err.(malformed); ok {
		return "malformed"
	}
	switch err {
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
		mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
		mergepatch.ErrUnsupportedStrategicMergePatchFormat, jsonpatch.ErrBadJSONPatch:
		return "malformed"
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return "failed"
	}
	if kind == "json" {
		return "failed"
	}
	return "other"
}

// describe collects the fields of a struct, and of the structs that it leads to.
func describe(name string, t reflect.Type, into map[string]map[string]Field) {
	if _, done := into[name]; done {
		return
	}
	fields := map[string]Field{}
	into[name] = fields
	collect(t, fields, into)
}

func collect(t reflect.Type, fields map[string]Field, into map[string]map[string]Field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				collect(inner, fields, into)
			}
			continue
		}
		if tag == "" || tag == "-" {
			continue
		}
		field := Field{Strategy: f.Tag.Get("patchStrategy"), Key: f.Tag.Get("patchMergeKey")}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !reflect.PointerTo(inner).Implements(marshaler) {
			field.Type = inner.Name()
			describe(field.Type, inner, into)
		}
		fields[tag] = field
	}
}

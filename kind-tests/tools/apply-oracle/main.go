// Command apply-oracle writes objects as kube-apiserver's own field manager does.
//
// It reads cases (cases.json beside the tests of the crate `patch`): types, and sequences of creates,
// updates and applies by several managers. It adds random sequences made from a fixed seed, runs
// each through upstream's field manager, and writes what came out as a golden file:
//
//	D=../../../apiserver/patch/tests/data/apply
//	go run . -cases $D/cases.json -out $D/golden.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Cases is the input: types by name, each an OpenAPI schema for each of its versions.
type Cases struct {
	Types     map[string]map[string]json.RawMessage `json:"types"`
	Sets      []string                              `json:"sets"`
	Scales    []Scale                               `json:"scales"`
	Sequences []Sequence                            `json:"sequences"`
}

// Sequence is what happens to one object.
type Sequence struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Steps []Step `json:"steps"`
}

// Step is one write. Do is create, update or apply.
type Step struct {
	Do          string          `json:"do"`
	By          string          `json:"by"`
	Version     string          `json:"version,omitempty"`
	Subresource string          `json:"subresource,omitempty"`
	Force       bool            `json:"force,omitempty"`
	Type        string          `json:"type,omitempty"`
	Object      json.RawMessage `json:"object"`
	Outcome     *Outcome        `json:"outcome,omitempty"`
}

// Outcome is the object after a step, or why there is none. Fields has the bytes of each set.
type Outcome struct {
	Object json.RawMessage `json:"object,omitempty"`
	Fields []string        `json:"fields,omitempty"`
	Class  string          `json:"class,omitempty"`
	Error  string          `json:"error,omitempty"`
	Causes [][2]string     `json:"causes,omitempty"`
}

// Scale is what becomes of an object's managed fields in its Scale, and of them after a write there.
// Paths has for each version where the replicas are, or nothing.
type Scale struct {
	Name    string             `json:"name"`
	Object  json.RawMessage    `json:"object"`
	Scale   json.RawMessage    `json:"scale,omitempty"`
	Version string             `json:"version"`
	Paths   map[string]*string `json:"paths"`
	Down    json.RawMessage    `json:"down,omitempty"`
	Back    json.RawMessage    `json:"back,omitempty"`
}

// Set is one set of fields and what upstream makes of it.
type Set struct {
	In     string `json:"in"`
	Out    string `json:"out,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

func main() {
	in := flag.String("cases", "", "file with cases")
	out := flag.String("out", "", "golden file to write")
	flag.Parse()
	text, err := os.ReadFile(*in)
	check(err)
	var cases Cases
	check(json.Unmarshal(text, &cases))
	cases.Sequences = append(cases.Sequences, random(rand.New(rand.NewSource(11)))...)
	kinds := map[string]*kind{}
	for name, versions := range cases.Types {
		kinds[name] = newKind(name, versions)
	}
	var sets, scales, sequences []string
	for _, set := range cases.Sets {
		sets = append(sets, encode(reencode(set)))
	}
	for i := range cases.Scales {
		through(&cases.Scales[i])
		scales = append(scales, encode(cases.Scales[i]))
	}
	for i := range cases.Sequences {
		run(&cases.Sequences[i], kinds)
		sequences = append(sequences, encode(cases.Sequences[i]))
	}
	body := fmt.Sprintf("{\"sets\":[\n%s\n],\n\"scales\":[\n%s\n],\n\"sequences\":[\n%s\n]}\n",
		strings.Join(sets, ",\n"), strings.Join(scales, ",\n"), strings.Join(sequences, ",\n"))
	check(os.WriteFile(*out, []byte(body), 0o644))
}

func reencode(in string) Set {
	set := fieldpath.Set{}
	if err := set.FromJSON(strings.NewReader(in)); err != nil {
		return Set{In: in, Failed: true}
	}
	text, err := set.ToJSON()
	check(err)
	return Set{In: in, Out: string(text)}
}

func encode(value any) string {
	text, err := json.Marshal(value)
	check(err)
	return string(text)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

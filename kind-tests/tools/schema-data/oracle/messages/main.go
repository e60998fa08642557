// Command messages records the protobuf of objects of all kinds that a server may have imported, as
// Go's encoder writes it: of the objects that a real kube-apiserver returned (served.json), and of one
// object of each kind in which every Go field is set that no kind before had.
//
// Usage: go run ./oracle/messages   (in kind-tests/tools/schema-data)
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kcp-rs/kind-tests/tools/schema-data/kinds"
)

// answer is one line of the golden file. Served objects are in their own file, as long as nothing of
// them is lost in protobuf.
type answer struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Object     json.RawMessage `json:"object,omitempty"`
	Raw        []byte          `json:"raw"`
}

type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func main() {
	folder := flag.String("folder", "../../../apiserver/schema/tests/data/import", "served.json is read, messages.json written")
	data := flag.String("data", "../../../apiserver/schema/data/known", "the data files of the kinds")
	flag.Parse()
	if err := run(*folder, *data); err != nil {
		log.Fatal(err)
	}
}

func run(folder, data string) error {
	scheme := runtime.NewScheme()
	for _, add := range kinds.Builders {
		if err := add(scheme); err != nil {
			return err
		}
	}
	answers, err := served(scheme, folder)
	if err != nil {
		return err
	}
	known, err := knownKinds(data)
	if err != nil {
		return err
	}
	f := &filler{filled: map[reflect.Type]bool{}}
	for _, gvk := range known {
		object, err := scheme.New(gvk)
		if err != nil {
			return err
		}
		f.fill(reflect.ValueOf(object).Elem())
		a, err := encode(gvk, object.(message))
		if err != nil {
			return err
		}
		answers = append(answers, a)
	}
	var lines []string
	for _, a := range answers {
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
	}
	text := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	return os.WriteFile(filepath.Join(folder, "messages.json"), []byte(text), 0o644)
}

// served encodes what a server returned.
func served(scheme *runtime.Scheme, folder string) ([]answer, error) {
	text, err := os.ReadFile(filepath.Join(folder, "served.json"))
	if err != nil {
		return nil, err
	}
	var lines []struct {
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(text, &lines); err != nil {
		return nil, err
	}
	var answers []answer
	for _, line := range lines {
		var meta runtime.TypeMeta
		if err := json.Unmarshal(line.Object, &meta); err != nil {
			return nil, err
		}
		gvk := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
		object, err := scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(line.Object, object); err != nil {
			return nil, err
		}
		a, err := encode(gvk, object.(message))
		if err != nil {
			return nil, err
		}
		// Objects inside others lose their kinds in protobuf.
		var before, after any
		if err := json.Unmarshal(line.Object, &before); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(a.Object, &after); err != nil {
			return nil, err
		}
		if reflect.DeepEqual(before, after) {
			a.Object = nil
		}
		answers = append(answers, answer{Object: a.Object, Raw: a.Raw})
	}
	return answers, nil
}

// encode gives the message, and the JSON of what it decodes to.
func encode(gvk schema.GroupVersionKind, object message) (answer, error) {
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	raw, err := object.Marshal()
	if err != nil {
		return answer{}, err
	}
	back := reflect.New(reflect.TypeOf(object).Elem()).Interface().(message)
	if err := back.Unmarshal(raw); err != nil {
		return answer{}, err
	}
	back.GetObjectKind().SetGroupVersionKind(gvk)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(back); err != nil {
		return answer{}, err
	}
	version, kind := gvk.ToAPIVersionAndKind()
	return answer{version, kind, bytes.TrimSpace(text.Bytes()), raw}, nil
}

// knownKinds reads the kinds from the data files, sorted.
func knownKinds(folder string) ([]schema.GroupVersionKind, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []schema.GroupVersionKind
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var types []struct{ Kinds [][3]string }
		if err := json.Unmarshal(text, &types); err != nil {
			return nil, err
		}
		for _, t := range types {
			for _, k := range t.Kinds {
				all = append(all, schema.GroupVersionKind{Group: k[0], Version: k[1], Kind: k[2]})
			}
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
	return all, nil
}

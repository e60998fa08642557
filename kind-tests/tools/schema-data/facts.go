package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// typeFacts is one line of a data file. apiserver/schema/src/data.rs reads it.
type typeFacts struct {
	Name   string       `json:"name"`
	Kinds  [][3]string  `json:"kinds,omitempty"`
	Atomic bool         `json:"atomic,omitempty"`
	Fields []fieldFacts `json:"fields,omitempty"`
}

// fieldFacts describes one Go struct field.
//
// Type is an expression: a scalar's name, the name of a struct type, `[]T`, `{}T`, or `strings`
// (a list of strings which protobuf wraps in a message).
type fieldFacts struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Num         int             `json:"num,omitempty"`
	Proto       string          `json:"proto,omitempty"` // only when it isn't the JSON name
	Inline      bool            `json:"inline,omitempty"`
	Ptr         bool            `json:"ptr,omitempty"`
	Omit        string          `json:"omit,omitempty"` // "empty" or "zero"
	Go          string          `json:"go,omitempty"`   // the Go type's name, where it isn't the plain one
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	ItemDefault json.RawMessage `json:"itemDefault,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Strategy    string          `json:"strategy,omitempty"`
	MergeKey    string          `json:"mergeKey,omitempty"`
	List        string          `json:"list,omitempty"`
	Keys        []string        `json:"keys,omitempty"`
	Map         string          `json:"map,omitempty"`
}

type generator struct {
	published map[string]*published
	types     map[reflect.Type]*typeFacts
}

// scalars are Go types with an encoding of their own.
var scalars = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "microTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "fieldsV1",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Verbs":      "strings",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "intOrString",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "raw",
	"k8s.io/api/authentication/v1.ExtraValue":         "strings",
	"k8s.io/api/authorization/v1.ExtraValue":          "strings",
	"k8s.io/api/certificates/v1.ExtraValue":           "strings",

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "json",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "schemaOrBool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "schemaOrArray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schemaOrStrings",
}

// modelName is the name under which OpenAPI publishes a type.
func modelName(t reflect.Type) string {
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

func (g *generator) add(t reflect.Type) (*typeFacts, error) {
	return g.addInlined(t, &published{})
}

// addInlined describes a type; a type that is only ever inlined isn't published itself, but its
// fields are, in the type around it.
func (g *generator) addInlined(t reflect.Type, around *published) (*typeFacts, error) {
	if known, ok := g.types[t]; ok {
		return known, nil
	}
	facts := &typeFacts{Name: modelName(t)}
	g.types[t] = facts
	doc := g.published[facts.Name]
	if doc == nil {
		doc = around
	}
	facts.Atomic = doc.MapType == "atomic"
	for i := range t.NumField() {
		field, ok, err := g.field(t.Field(i), doc)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", facts.Name, t.Field(i).Name, err)
		}
		if ok {
			facts.Fields = append(facts.Fields, field)
		}
	}
	return facts, nil
}

func (g *generator) field(f reflect.StructField, doc *published) (fieldFacts, bool, error) {
	var out fieldFacts
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	flags := strings.Split(options, ",")
	proto := f.Tag.Get("protobuf")
	if !f.IsExported() || name == "-" {
		return out, false, nil
	}
	if name == "" && !slices.Contains(flags, "inline") && !f.Anonymous {
		return out, false, nil
	}
	out.Name = name
	out.Inline = name == ""
	switch {
	case slices.Contains(flags, "omitzero"):
		out.Omit = "zero"
	case slices.Contains(flags, "omitempty"):
		out.Omit = "empty"
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		out.Ptr = true
		t = t.Elem()
	}
	if out.Inline {
		if _, err := g.addInlined(t, doc); err != nil {
			return out, false, err
		}
	}
	expr, err := g.expr(t)
	if err != nil {
		return out, false, err
	}
	out.Type = expr
	out.Go = goName(t)
	if err := out.setProto(proto); err != nil {
		return out, false, err
	}
	if p := doc.Properties[name]; p != nil {
		out.setPublished(p, slices.Contains(doc.Required, name))
	}
	return out, true, nil
}

func (out *fieldFacts) setPublished(p *published, required bool) {
	out.Required = required
	out.Default = p.Default
	if p.Items != nil {
		out.ItemDefault = p.Items.Default
	}
	if p.Values != nil {
		out.ItemDefault = p.Values.Default
	}
	for _, value := range p.Enum {
		var text string
		if json.Unmarshal(value, &text) == nil {
			out.Enum = append(out.Enum, text)
		}
	}
	out.Strategy, out.MergeKey = p.Strategy, p.MergeKey
	out.List, out.Keys, out.Map = p.ListType, p.ListMapKeys, p.MapType
}

func protoName(tag string) string {
	for part := range strings.SplitSeq(tag, ",") {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			return name
		}
	}
	return ""
}

// setProto reads a tag such as `bytes,1,opt,name=metadata`. Its first part, the wire kind, is wrong
// in a few places upstream; the protobuf code follows the Go type, and so does our reader.
func (out *fieldFacts) setProto(tag string) error {
	if tag == "" || tag == "-" {
		return nil
	}
	parts := strings.Split(tag, ",")
	if len(parts) < 2 || slices.Contains(parts, "packed") {
		return fmt.Errorf("unexpected protobuf tag %q", tag)
	}
	num, err := strconv.Atoi(parts[1])
	if err != nil {
		return err
	}
	out.Num = num
	if name := protoName(tag); name != out.Name {
		out.Proto = name
	}
	return nil
}

func (g *generator) expr(t reflect.Type) (string, error) {
	if scalar, ok := scalars[t.PkgPath()+"."+t.Name()]; ok {
		if strings.HasPrefix(scalar, "schemaOr") {
			// These hold a JSONSchemaProps beside their other form.
			if inner, ok := t.FieldByName("Schema"); ok {
				if _, err := g.add(inner.Type.Elem()); err != nil {
					return "", err
				}
			}
		}
		return scalar, nil
	}
	switch t.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "bool", nil
	case reflect.Int32:
		return "int32", nil
	case reflect.Int64:
		return "int64", nil
	case reflect.Float64:
		return "double", nil
	case reflect.Struct:
		facts, err := g.add(t)
		if err != nil {
			return "", err
		}
		return facts.Name, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		item, err := g.expr(t.Elem())
		return "[]" + item, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return "", fmt.Errorf("map with keys %s", t.Key())
		}
		item, err := g.expr(t.Elem())
		return "{}" + item, err
	}
	return "", fmt.Errorf("unexpected Go type %s", t)
}

// goName is the Go name that decoding errors show, where the reader cannot derive it from the type
// expression: named scalars, lists and maps.
func goName(t reflect.Type) string {
	if name := t.String(); name != derivedName(t) {
		return name
	}
	return ""
}

// derivedName is what the reader makes of a type expression.
func derivedName(t reflect.Type) string {
	if scalar, special := scalars[t.PkgPath()+"."+t.Name()]; scalar == "strings" {
		return "[]string"
	} else if special {
		return t.String()
	}
	switch t.Kind() {
	case reflect.Struct:
		parts := strings.Split(modelName(t), ".")
		return strings.Join(parts[len(parts)-2:], ".")
	case reflect.Slice:
		return "[]" + derivedName(t.Elem())
	case reflect.Map:
		return "map[string]" + derivedName(t.Elem())
	default:
		return t.Kind().String()
	}
}

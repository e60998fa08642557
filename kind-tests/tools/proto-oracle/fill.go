package main

import (
	"fmt"
	"log"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler sets every field to a value of its own.
type filler struct {
	count int64
	// schemas is how many JSON schemas lie around the value.
	schemas int
}

// deepest is how many JSON schemas contain each other.
const deepest = 2

func (f *filler) next() int64 {
	f.count++
	return f.count
}

func (f *filler) fill(v reflect.Value) {
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() {
			f.schemas++
			defer func() { f.schemas-- }()
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Tag.Get("protobuf") == "-" {
				continue
			}
			if f.schemas >= deepest && nests(field.Type) {
				continue
			}
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0xff, byte(f.next()), 0})
			return
		}
		size := 2
		if nests(v.Type().Elem()) {
			size = 1
		}
		v.Set(reflect.MakeSlice(v.Type(), size, size))
		for i := range size {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"b", "a/é"} {
			item := reflect.New(v.Type().Elem()).Elem()
			f.fill(item)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
			if nests(v.Type().Elem()) {
				break
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", f.next()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.next() * 1000)
	case reflect.Float64:
		v.SetFloat(float64(f.next()) + 0.5)
	default:
		log.Fatalf("no value for a %v", v.Type())
	}
}

// special sets types whose fields don't say what they mean.
func (f *filler) special(v reflect.Value) bool {
	switch value := v.Addr().Interface().(type) {
	case *metav1.Time:
		*value = metav1.Unix(1_700_000_000+f.next(), 123_456_789)
	case *metav1.MicroTime:
		*value = metav1.NewMicroTime(time.Unix(1_700_000_000+f.next(), 123_456_789))
	case *metav1.Duration:
		value.Duration = time.Duration(f.next()) * 1_500_000_000
	case *resource.Quantity:
		*value = *resource.NewMilliQuantity(f.next()*100, resource.DecimalSI)
	case *intstr.IntOrString:
		*value = intstr.FromString(fmt.Sprintf("%d%%", f.next()))
	case *runtime.RawExtension:
		value.Raw = f.json()
	case *metav1.FieldsV1:
		value.Raw = f.json()
	case *apiextensionsv1.JSON:
		value.Raw = f.json()
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		value.Allows = true
		f.fill(reflect.ValueOf(&value.Schema).Elem())
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		f.fill(reflect.ValueOf(&value.Schema).Elem())
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		value.Property = []string{"x", "y"}
	default:
		return false
	}
	return true
}

func (f *filler) json() []byte {
	return fmt.Appendf(nil, `{"a":[%d,null,true],"b":{"c":"d"}}`, f.next())
}

// nests says whether a type can contain itself.
func nests(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[apiextensionsv1.JSONSchemaProps](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		return true
	}
	return false
}

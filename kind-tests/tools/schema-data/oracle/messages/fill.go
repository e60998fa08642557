package main

import (
	"fmt"
	"log"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler sets every field to a value of its own, and each struct type only once, so that all objects
// together are as large as all types together.
type filler struct {
	count  int64
	filled map[reflect.Type]bool
}

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
		if f.filled[v.Type()] {
			return
		}
		f.filled[v.Type()] = true
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Type != reflect.TypeFor[metav1.TypeMeta]() && field.Tag.Get("protobuf") != "-" {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0xff, byte(f.next()), 0})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"b", "a/é"} {
			item := reflect.New(v.Type().Elem()).Elem()
			f.fill(item)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("t%d", f.next()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.next() * 100)
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
		value.Raw = fmt.Appendf(nil, `{"a":[%d,null]}`, f.next())
	case *metav1.FieldsV1:
		value.Raw = fmt.Appendf(nil, `{"f:a":{"%d":{}}}`, f.next())
	default:
		return false
	}
	return true
}

// Command oracle records what Kubernetes' own decoder makes of our test inputs: the object as it
// comes back after a journey through protobuf (the form in which it would be stored), the unknown
// fields, or the error.
//
// Usage: go run ./oracle   (in kind-tests/tools/schema-data)
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// answer is one line of the golden file.
type answer struct {
	Object  json.RawMessage `json:"object,omitempty"`
	Unknown []string        `json:"unknown,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func main() {
	folder := flag.String("folder", "../../../apiserver/schema/tests/data", "cases.json is read, answers.json written")
	flag.Parse()
	if err := run(*folder); err != nil {
		log.Fatal(err)
	}
}

func run(folder string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme, certificatesv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme,
		flowcontrolv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "cases.json"))
	if err != nil {
		return err
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(text, &cases); err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, body := range cases {
		answer, err := ask(scheme, body)
		if err != nil {
			return fmt.Errorf("case %d: %w", i, err)
		}
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(answer); err != nil {
			return err
		}
		out.Write(bytes.TrimSpace(line.Bytes()))
		if i+1 < len(cases) {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return os.WriteFile(filepath.Join(folder, "answers.json"), out.Bytes(), 0o644)
}

func ask(scheme *runtime.Scheme, body []byte) (answer, error) {
	var meta runtime.TypeMeta
	if err := json.Unmarshal(body, &meta); err != nil {
		return answer{}, err
	}
	gvk := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	options := jsonserializer.SerializerOptions{Strict: true}
	serializer := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, options)
	object, _, err := serializer.Decode(body, &gvk, nil)
	var result answer
	if err != nil {
		if object == nil || !runtime.IsStrictDecodingError(err) {
			result.Error = err.Error()
			return result, nil
		}
		strict, _ := runtime.AsStrictDecodingError(err)
		for _, each := range strict.Errors() {
			result.Unknown = append(result.Unknown, each.Error())
		}
	}
	wire := protobuf.NewSerializer(scheme, scheme)
	var stored bytes.Buffer
	if err := wire.Encode(object, &stored); err != nil {
		return result, err
	}
	back, _, err := wire.Decode(stored.Bytes(), &gvk, nil)
	if err != nil {
		return result, err
	}
	back.GetObjectKind().SetGroupVersionKind(gvk)
	var final bytes.Buffer
	if err := serializer.Encode(back, &final); err != nil {
		return result, err
	}
	result.Object = bytes.TrimSpace(final.Bytes())
	return result, nil
}

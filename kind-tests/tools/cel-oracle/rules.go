package main

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"sort"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

// RuleCase is a schema with rules, and objects that are judged by it.
type RuleCase struct {
	Name    string          `json:"name"`
	Schema  json.RawMessage `json:"schema"`
	Objects []RuleObject    `json:"objects"`
}

// RuleObject is an object that is created or, with the old one, updated.
type RuleObject struct {
	New json.RawMessage `json:"new"`
	Old json.RawMessage `json:"old,omitempty"`
}

// RuleAnswer is what upstream says of a case: of the CRD, and of each object.
type RuleAnswer struct {
	Name    string       `json:"name"`
	CRD     []string     `json:"crd"`
	Objects []ObjectSays `json:"objects"`
}

// ObjectSays is what rules say of an object.
type ObjectSays struct {
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`
}

var selfType = regexp.MustCompile(`selfType[0-9]+`)

type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func answerRules(casesFile, out string) {
	text, err := os.ReadFile(casesFile)
	check(err)
	var cases []RuleCase
	check(json.Unmarshal(text, &cases))
	answers := []RuleAnswer{}
	for _, c := range cases {
		answers = append(answers, answerRule(c))
	}
	data, err := json.MarshalIndent(answers, "", " ")
	check(err)
	write(out, append(data, '\n'))
}

func answerRule(c RuleCase) RuleAnswer {
	var v1 apiextensionsv1.JSONSchemaProps
	check(json.Unmarshal(c.Schema, &v1))
	var internal apiextensions.JSONSchemaProps
	check(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &internal, nil))
	answer := RuleAnswer{Name: c.Name, CRD: judgeCRD(&internal), Objects: []ObjectSays{}}
	structural, err := schema.NewStructural(&internal)
	check(err)
	validator := celschema.NewValidator(structural, true, celconfig.PerCallLimit)
	for _, o := range c.Objects {
		var obj, old interface{}
		check(jsonUnmarshal(o.New, &obj))
		options := []celschema.Option{}
		if len(o.Old) > 0 {
			check(jsonUnmarshal(o.Old, &old))
			options = append(options, celschema.WithRatcheting(
				common.NewCorrelatedObject(obj, old, &model.Structural{Structural: structural})))
		}
		warnings := &recorder{texts: []string{}}
		ctx := warning.WithWarningRecorder(context.Background(), warnings)
		errs, _ := validator.Validate(ctx, nil, structural, obj, old, celconfig.RuntimeCELCostBudget, options...)
		sort.Strings(warnings.texts)
		answer.Objects = append(answer.Objects, ObjectSays{Problems: texts(errs), Warnings: warnings.texts})
	}
	return answer
}

func judgeCRD(props *apiextensions.JSONSchemaProps) []string {
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{
				Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList",
			},
			Versions:              []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			Validation:            &apiextensions.CustomResourceValidation{OpenAPIV3Schema: props},
			PreserveUnknownFields: new(bool),
			Conversion:            &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	errs := field.ErrorList{}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), crd) {
		if strings.HasPrefix(err.Field, "spec.validation.openAPIV3Schema") {
			errs = append(errs, err)
		}
	}
	return texts(errs)
}

func texts(errs field.ErrorList) []string {
	out := []string{}
	for _, err := range errs {
		// The name of the type has the time in it.
		out = append(out, selfType.ReplaceAllString(err.Error(), "selfType"))
	}
	sort.Strings(out)
	return out
}

// Command cel-oracle answers CEL cases as kube-apiserver's own libraries do.
//
// It reads cases (cases.json beside the tests of the crate `cel-rules`): an expression, the name of a
// schema that types `self` and `oldSelf`, and their values. Each is compiled, estimated and evaluated
// by Kubernetes' CEL environment, and what came out is written as a golden file:
//
//	D=../../../apiserver/schema/cel
//	go run . -cases $D/tests/data/cases.json -out $D/tests/data/golden.json
//
// With -functions it writes the declared functions of that environment as facts, one overload a line:
//
//	go run . -functions $D/data/functions.txt
//
// With -rules it judges schemas with x-kubernetes-validations as CRDs, and objects by them:
//
//	D=../../../apiserver/schema/tests/data/rules
//	go run . -rules $D/cases.json -out $D/golden.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// Cases is the input: schemas by name, and groups of expressions over one schema and one value.
type Cases struct {
	Schemas map[string]json.RawMessage `json:"schemas"`
	Groups  []Group                    `json:"groups"`
}

// Group is a list of expressions that are asked of the same values.
type Group struct {
	Name   string          `json:"name"`
	Schema string          `json:"schema"`
	Self   json.RawMessage `json:"self"`
	Exprs  []string        `json:"exprs"`
}

// Answer is what upstream makes of one expression.
type Answer struct {
	Group string `json:"group"`
	Expr  string `json:"expr"`
	// Type of the result, when the expression compiles.
	Type string `json:"type,omitempty"`
	// Value as text, when the evaluation succeeds.
	Value string `json:"value,omitempty"`
	// Stage that failed: compile, program or eval.
	Stage string `json:"stage,omitempty"`
	Error string `json:"error,omitempty"`
	// Cost units that the evaluation took, and the estimate.
	Cost *uint64 `json:"cost,omitempty"`
	Min  uint64  `json:"min"`
	Max  uint64  `json:"max"`
}

func main() {
	casesFile := flag.String("cases", "", "cases to answer")
	out := flag.String("out", "", "where the answers go")
	functions := flag.String("functions", "", "where the declared functions go")
	rules := flag.String("rules", "", "rules of custom resources to answer")
	flag.Parse()
	if *rules != "" {
		answerRules(*rules, *out)
		return
	}
	base := environment.MustBaseEnvSet(version.MajorMinor(1, 36))
	if *functions != "" {
		write(*functions, []byte(declarations(base.StoredExpressionsEnv())))
	}
	if *casesFile == "" {
		return
	}
	text, err := os.ReadFile(*casesFile)
	check(err)
	var cases Cases
	check(json.Unmarshal(text, &cases))
	answers := []Answer{}
	for _, group := range cases.Groups {
		answers = append(answers, answerGroup(base, cases.Schemas, group)...)
	}
	var b strings.Builder
	b.WriteString("[\n")
	for i, a := range answers {
		line, err := json.Marshal(a)
		check(err)
		b.Write(line)
		if i+1 < len(answers) {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString("]\n")
	write(*out, []byte(b.String()))
}

func answerGroup(base *environment.EnvSet, schemas map[string]json.RawMessage, group Group) []Answer {
	raw, found := schemas[group.Schema]
	if !found {
		log.Fatalf("no schema %q", group.Schema)
	}
	var v1 apiextensionsv1.JSONSchemaProps
	check(json.Unmarshal(raw, &v1))
	var internal apiextensions.JSONSchemaProps
	check(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	check(err)
	decl := model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
	var self interface{}
	check(jsonUnmarshal(group.Self, &self))
	env, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("self", decl.CelType()),
			cel.Variable("oldSelf", types.NewOptionalType(decl.CelType())),
		},
		DeclTypes: []*apiservercel.DeclType{decl},
	})
	check(err)
	selfVal := celschema.UnstructuredToVal(self, structural)
	vars := map[string]interface{}{"self": selfVal, "oldSelf": types.OptionalOf(selfVal)}
	estimator := &library.CostEstimator{SizeEstimator: &sizes{root: decl}}
	var answers []Answer
	for _, expr := range group.Exprs {
		answers = append(answers, answer(env.StoredExpressionsEnv(), estimator, group.Name, expr, vars))
	}
	return answers
}

func answer(env *cel.Env, estimator *library.CostEstimator, group, expr string, vars map[string]interface{}) Answer {
	a := Answer{Group: group, Expr: expr}
	ast, issues := env.Compile(expr)
	if issues != nil && issues.Err() != nil {
		a.Stage, a.Error = "compile", issues.String()
		return a
	}
	a.Type = ast.OutputType().String()
	prog, err := env.Program(ast, cel.CostTracking(estimator))
	if err != nil {
		a.Stage, a.Error = "program", err.Error()
		return a
	}
	estimate, err := env.EstimateCost(ast, estimator)
	check(err)
	a.Min, a.Max = estimate.Min, estimate.Max
	val, details, err := prog.Eval(vars)
	if details != nil {
		a.Cost = details.ActualCost()
	}
	if err != nil {
		a.Stage, a.Error = "eval", err.Error()
		return a
	}
	a.Value = render(val)
	return a
}

func declarations(env *cel.Env) string {
	var b strings.Builder
	names := []string{}
	for name := range env.Functions() {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fn := env.Functions()[name]
		for _, o := range fn.OverloadDecls() {
			args := []string{}
			for _, t := range o.ArgTypes() {
				args = append(args, t.String())
			}
			kind := "global"
			if o.IsMemberFunction() {
				kind = "member"
			}
			fmt.Fprintf(&b, "%s|%s|%s|%s|%s\n", name, o.ID(), kind, strings.Join(args, ";"), o.ResultType().String())
		}
	}
	for _, v := range env.Variables() {
		fmt.Fprintf(&b, "var|%s|%s\n", v.Name(), v.Type().String())
	}
	return b.String()
}

func jsonUnmarshal(data []byte, v *interface{}) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	*v = numbers(*v)
	return nil
}

// numbers makes int64 and float64 as the server's decoder does.
func numbers(v interface{}) interface{} {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		check(err)
		return f
	case []interface{}:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]interface{}:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

func write(path string, data []byte) {
	check(os.WriteFile(path, data, 0o644))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

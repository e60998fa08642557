package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// render writes a value as text that is the same for equal values: maps are sorted.
func render(val ref.Val) string {
	switch v := val.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.Int:
		return strconv.FormatInt(int64(v), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10) + "u"
	case types.Double:
		return "double(" + strconv.FormatFloat(float64(v), 'f', -1, 64) + ")"
	case types.String:
		text, err := json.Marshal(string(v))
		check(err)
		return string(text)
	case types.Bytes:
		return fmt.Sprintf("b%x", []byte(v))
	case types.Duration:
		return fmt.Sprintf("duration(%d)", v.Duration.Nanoseconds())
	case types.Timestamp:
		return "timestamp(" + v.Time.UTC().Format(time.RFC3339Nano) + ")"
	case *types.Type:
		return "type(" + v.TypeName() + ")"
	case *types.Optional:
		if !v.HasValue() {
			return "optional.none"
		}
		return "optional(" + render(v.GetValue()) + ")"
	case apiservercel.Quantity:
		return "quantity(" + v.Quantity.String() + ")"
	case *apiservercel.Quantity:
		return "quantity(" + v.Quantity.String() + ")"
	case apiservercel.IP:
		return "ip(" + v.Addr.String() + ")"
	case apiservercel.CIDR:
		return "cidr(" + v.Prefix.String() + ")"
	case apiservercel.URL:
		return "url(" + v.URL.String() + ")"
	case apiservercel.Semver:
		return "semver(" + v.Version.String() + ")"
	case traits.Lister:
		parts := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			parts = append(parts, render(it.Next()))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case traits.Mapper:
		parts := []string{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			if k == nil {
				// Upstream's iterator ends with nothing for each field that has no schema.
				continue
			}
			parts = append(parts, render(k)+": "+render(v.Get(k)))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprintf("other(%s)", val.Type().TypeName())
}

// sizes estimates as the server does for rules of custom resources: from the declared types.
type sizes struct {
	root *apiservercel.DeclType
}

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	node := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			node = node.ElemType
		case "@keys":
			node = node.KeyType
		default:
			field, found := node.Fields[name]
			if !found {
				return nil
			}
			node = field.Type
		}
		if node == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(node.MaxElements)}
}

func (s *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
)

// random makes sequences over few names, so that managers often touch the same places.
func random(r *rand.Rand) []Sequence {
	g := generator{r}
	var sequences []Sequence
	for i := range 45 {
		s := Sequence{Name: fmt.Sprintf("random %d", i), Type: "thing"}
		for at := range 6 {
			s.Steps = append(s.Steps, g.step(at))
		}
		sequences = append(sequences, s)
	}
	return sequences
}

type generator struct{ *rand.Rand }

func (g generator) chance(percent int) bool { return g.Intn(100) < percent }

func (g generator) word() string { return []string{"a", "b", "c", "d"}[g.Intn(4)] }

func (g generator) step(at int) Step {
	step := Step{Do: "apply", By: []string{"ann", "bob", "kubectl"}[g.Intn(3)], Version: "v1"}
	if g.chance(25) {
		step.Version = "v2"
	}
	if at == 0 && g.chance(60) {
		step.Do = "create"
	} else if at > 0 && g.chance(35) {
		step.Do = "update"
	}
	step.Force = step.Do == "apply" && g.chance(50)
	if at > 0 && g.chance(10) {
		step.Subresource = "status"
	}
	object := g.object(step.Version, step.Do != "apply")
	if step.Do == "update" {
		object["metadata"].(map[string]any)["uid"] = "u"
	}
	text, err := json.Marshal(object)
	check(err)
	step.Object = text
	return step
}

func (g generator) object(version string, repeats bool) map[string]any {
	spec := map[string]any{}
	object := map[string]any{
		"apiVersion": group + "/" + version,
		"kind":       "Thing",
		"metadata":   map[string]any{"name": "x"},
	}
	if g.chance(30) {
		object["metadata"].(map[string]any)["labels"] = g.labels()
	}
	if g.chance(90) {
		object["spec"] = spec
	}
	if g.chance(25) {
		object["status"] = map[string]any{"phase": g.word()}
	}
	fill := func(name string, value func() any) {
		if g.chance(28) {
			spec[name] = value()
		}
	}
	moved := map[string]string{"v1": "old", "v2": "new"}[version]
	fill(moved, func() any { return map[string]any{g.word(): g.word()} })
	fill("replicas", func() any { return g.Intn(3) })
	fill("title", func() any { return g.word() })
	fill("any", func() any { return []any{1, "1", g.word()}[g.Intn(3)] })
	fill("tags", func() any { return g.words(repeats) })
	fill("words", func() any { return g.words(true) })
	fill("items", func() any { return g.items(2, repeats) })
	fill("ports", func() any { return g.ports(repeats) })
	fill("labels", func() any { return g.labels() })
	fill("limits", func() any { return g.labels() })
	fill("selector", func() any { return map[string]any{"a": g.word()} })
	fill("nested", func() any { return g.nested() })
	fill("free", func() any { return g.free(3) })
	fill("open", func() any { return g.free(3) })
	fill("objects", func() any { return map[string]any{g.word(): g.pair(), g.word(): g.pair()} })
	fill("lists", func() any { return map[string]any{g.word(): g.words(repeats)} })
	for _, name := range []string{"labels", "nested", "tags", "title", "free", "items"} {
		if g.chance(4) {
			spec[name] = nil
		}
	}
	return object
}

func (g generator) labels() map[string]any {
	labels := map[string]any{}
	for range g.Intn(3) {
		labels[g.word()] = g.word()
	}
	return labels
}

func (g generator) pair() map[string]any {
	pair := map[string]any{}
	for _, name := range []string{"x", "y"} {
		if g.chance(60) {
			pair[name] = g.word()
		}
	}
	return pair
}

func (g generator) words(repeats bool) []any {
	words := []any{}
	for _, at := range g.Perm(4)[:g.Intn(4)] {
		words = append(words, string(rune('a'+at)))
	}
	if repeats && len(words) > 0 && g.chance(20) {
		words = append(words, words[0])
	}
	return words
}

func (g generator) items(depth int, repeats bool) []any {
	items := []any{}
	for _, name := range g.words(repeats) {
		item := map[string]any{"name": name}
		if g.chance(60) {
			item["value"] = g.Intn(3)
		}
		if g.chance(25) {
			item["tags"] = g.words(repeats)
		}
		if depth > 0 && g.chance(30) {
			item["items"] = g.items(depth-1, repeats)
		}
		items = append(items, item)
	}
	return items
}

func (g generator) ports(repeats bool) []any {
	ports := []any{}
	seen := map[string]bool{}
	for range g.Intn(4) {
		port := map[string]any{"port": 80 + g.Intn(2)}
		protocol := "TCP"
		if g.chance(50) {
			protocol = []string{"TCP", "UDP"}[g.Intn(2)]
			port["protocol"] = protocol
		}
		if g.chance(60) {
			port["name"] = g.word()
		}
		key := fmt.Sprint(port["port"], protocol)
		if repeats || !seen[key] {
			ports = append(ports, port)
		}
		seen[key] = true
	}
	return ports
}

func (g generator) nested() map[string]any {
	nested := map[string]any{}
	if g.chance(50) {
		nested["a"] = g.word()
	}
	if g.chance(50) {
		inner := g.pair()
		if g.chance(40) {
			inner["list"] = g.words(true)
		}
		nested["inner"] = inner
	}
	return nested
}

func (g generator) free(depth int) map[string]any {
	free := map[string]any{}
	for range 1 + g.Intn(2) {
		var value any = g.word()
		switch g.Intn(6) {
		case 0:
			value = g.Intn(3)
		case 1:
			value = g.words(true)
		case 2:
			value = nil
		case 3, 4:
			if depth > 0 {
				value = g.free(depth - 1)
			}
		}
		free[g.word()] = value
	}
	return free
}

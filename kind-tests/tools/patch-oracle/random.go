package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
)

// randomCases makes small cases over few names, so that they often touch the same places.
func randomCases(r *rand.Rand) []Case {
	var cases []Case
	add := func(kind string, count int, doc, patch func() any) {
		for i := range count {
			c := Case{Name: fmt.Sprintf("random %s %d", kind, i), Type: kind}
			c.Doc, c.Patch = encode(doc()), encode(patch())
			cases = append(cases, c)
		}
	}
	g := generator{r}
	add("Widget", 400, func() any { return g.widget(2, false) }, func() any { return g.widget(2, true) })
	add("json", 200, func() any { return g.object(3) }, g.operations)
	add("merge", 100, func() any { return g.object(3) }, func() any { return g.object(3) })
	return cases
}

type generator struct{ *rand.Rand }

func (g generator) chance(percent int) bool { return g.Intn(100) < percent }

func (g generator) word() string { return []string{"a", "b", "c", "d"}[g.Intn(4)] }

func (g generator) widget(depth int, patch bool) map[string]any {
	w := map[string]any{}
	g.fields(w, depth, patch, "tags", "parts")
	if g.chance(30) {
		w["name"] = g.word()
	}
	if g.chance(30) {
		w["size"] = g.Intn(3)
	}
	if g.chance(30) {
		w["labels"] = map[string]any{g.word(): g.word(), g.word(): g.word()}
	}
	if g.chance(20) {
		w["words"] = g.words()
	}
	if g.chance(20) {
		w["ports"] = g.parts(1, false)
	}
	for _, name := range []string{"inner", "swapped"} {
		if depth > 0 && g.chance(30) {
			w[name] = g.widget(depth-1, patch)
		}
	}
	if !patch {
		return w
	}
	for _, name := range []string{"name", "labels", "parts", "tags", "inner"} {
		if g.chance(5) {
			w[name] = nil
		}
	}
	if depth < 2 && g.chance(8) {
		w["$patch"] = []string{"replace", "delete", "merge"}[g.Intn(3)]
	}
	if g.chance(8) {
		keys := []string{}
		for _, name := range []string{"name", "size", "labels", "parts", "tags", "words", "ports", "inner", "swapped"} {
			if _, ok := w[name]; ok || g.chance(30) {
				keys = append(keys, name)
			}
		}
		w["$retainKeys"] = keys
	}
	return w
}

// fields fills in the lists that merge, and in a patch the directives about them.
func (g generator) fields(w map[string]any, depth int, patch bool, tags, parts string) {
	var names []string
	if g.chance(50) {
		names = g.words()
		w[tags] = names
	}
	if patch && g.chance(25) {
		gone := []string{}
		for _, word := range g.words() {
			if !contains(names, word) {
				gone = append(gone, word)
			}
		}
		w["$deleteFromPrimitiveList/"+tags] = gone
	}
	if patch && g.chance(25) {
		w["$setElementOrder/"+tags] = g.around(names)
	}
	names = nil
	if depth > 0 && g.chance(60) {
		items := g.parts(depth-1, patch)
		w[parts] = items
		for _, item := range items {
			if _, marked := item["$patch"]; !marked {
				names = append(names, item["name"].(string))
			}
		}
	}
	if patch && g.chance(30) {
		order := []any{}
		for _, name := range g.around(names) {
			order = append(order, map[string]any{"name": name})
		}
		w["$setElementOrder/"+parts] = order
	}
}

func (g generator) parts(depth int, patch bool) []map[string]any {
	items := []map[string]any{}
	for _, name := range g.words() {
		item := map[string]any{"name": name}
		if g.chance(40) {
			item["value"] = g.Intn(3)
		}
		if patch && g.chance(15) {
			item["$patch"] = []string{"delete", "delete", "replace"}[g.Intn(3)]
		} else if depth > 0 {
			g.fields(item, depth-1, patch, "tags", "parts")
		}
		items = append(items, item)
	}
	return items
}

// words are different names in any order.
func (g generator) words() []string {
	all := []string{"a", "b", "c", "d", "e"}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:g.Intn(len(all))]
}

// around gives an order that mostly holds the names, with others among them.
func (g generator) around(names []string) []string {
	order := []string{}
	for _, name := range names {
		for _, other := range g.words() {
			if !contains(names, other) && !contains(order, other) && g.chance(30) {
				order = append(order, other)
			}
		}
		if g.chance(97) {
			order = append(order, name)
		}
	}
	if len(names) == 0 {
		return g.words()
	}
	return order
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

func (g generator) object(depth int) map[string]any {
	o := map[string]any{}
	for range g.Intn(4) {
		o[g.word()] = g.value(depth - 1)
	}
	return o
}

func (g generator) value(depth int) any {
	switch n := g.Intn(8); {
	case n < 3 && depth > 0:
		return g.object(depth)
	case n < 5 && depth > 0:
		list := []any{}
		for range g.Intn(4) {
			list = append(list, g.value(depth-1))
		}
		return list
	case n == 6:
		return nil
	default:
		return g.Intn(3)
	}
}

func (g generator) path() string {
	path := ""
	for range 1 + g.Intn(3) {
		path += "/" + []string{"a", "b", "c", "d", "0", "1", "-1", "-", "a", "b"}[g.Intn(10)]
	}
	return path
}

func (g generator) operations() any {
	list := []any{}
	for range 1 + g.Intn(2) {
		op := map[string]any{"path": g.path()}
		switch kind := []string{"add", "add", "remove", "replace", "move", "copy", "test"}[g.Intn(7)]; kind {
		case "move", "copy":
			op["op"], op["from"] = kind, g.path()
		case "remove":
			op["op"] = kind
		default:
			op["op"], op["value"] = kind, g.value(2)
		}
		list = append(list, op)
	}
	return list
}

func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

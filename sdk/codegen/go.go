//go:build ignore

// Generates the wire types of the Go SDK from the JSON Schemas of the `qwen` dialect.
//
//	go run sdk/codegen/go.go           rewrites sdk/go/wire/generated.go
//	go run sdk/codegen/go.go --check   exits 1 if the committed file differs
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// The schemas in the order in which their definitions are written.
var schemas = []string{"qwen-stream.json", "qwen-stream-chunk.json", "qwen-input.json"}

// Words that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "url": "URL", "uri": "URI", "usd": "USD", "json": "JSON", "uuid": "UUID"}

type schema struct {
	Ref                  string             `json:"$ref"`
	Defs                 map[string]*schema `json:"$defs"`
	Title                string             `json:"title"`
	Description          string             `json:"description"`
	Type                 any                `json:"type"`
	Const                any                `json:"const"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	Items                json.RawMessage    `json:"items"`
	AnyOf                []*schema          `json:"anyOf"`
	OneOf                []*schema          `json:"oneOf"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
}

// UnmarshalJSON reads a schema, which may be `true`.
func (s *schema) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(data, (*plain)(s))
}

// types returns the JSON types of a schema except null.
func (s *schema) types() []string {
	switch given := s.Type.(type) {
	case string:
		return []string{given}
	case []any:
		var names []string
		for _, name := range given {
			if name != "null" {
				names = append(names, name.(string))
			}
		}
		return names
	}
	return nil
}

// isNullable reports whether a schema allows null.
func (s *schema) isNullable() bool {
	if list, ok := s.Type.([]any); ok && slices.Contains(list, any("null")) {
		return true
	}
	return slices.ContainsFunc(s.AnyOf, func(each *schema) bool { return each.Type == "null" })
}

// nonNull returns the only alternative of a nullable schema, or the schema itself.
func (s *schema) nonNull() *schema {
	var rest []*schema
	for _, each := range s.AnyOf {
		if each.Type != "null" {
			rest = append(rest, each)
		}
	}
	if len(rest) == 1 {
		return rest[0]
	}
	return s
}

type generator struct {
	out  bytes.Buffer
	defs map[string]*schema
}

// words returns the values of a schema that is a choice of constant strings.
func words(s *schema) []string {
	var found []string
	for _, each := range s.OneOf {
		word, ok := each.Const.(string)
		if !ok {
			return nil
		}
		found = append(found, word)
	}
	return found
}

// variants reports whether a schema is a choice of objects, which become one struct with all their fields.
func variants(s *schema) bool {
	return len(s.OneOf) > 0 && !slices.ContainsFunc(s.OneOf, func(each *schema) bool { return each.Properties == nil })
}

func exported(name string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if upper, ok := initialisms[part]; ok {
			b.WriteString(upper)
		} else {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return strings.ReplaceAll(b.String(), "callId", "CallID")
}

func (g *generator) comment(indent, lead, text string) {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case text == "" && lead == "":
		return
	case text == "":
		text = lead + " is a type of the wire."
	case lead != "":
		text = lead + ": " + text
	}
	fmt.Fprintf(&g.out, "%s// %s\n", indent, text)
}

// goType returns the Go type of a schema. `optional` values that have no zero of their own become pointers.
func (g *generator) goType(s *schema, optional bool) string {
	optional = optional || s.isNullable()
	s = s.nonNull()
	if s.Ref != "" {
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		target := g.defs[name]
		switch {
		case len(words(target)) > 0:
			return "string"
		case target.Properties == nil && !variants(target):
			return "json.RawMessage"
		case optional:
			return "*" + name
		}
		return name
	}
	types := s.types()
	if len(types) != 1 {
		return "json.RawMessage"
	}
	switch types[0] {
	case "string":
		return "string"
	case "boolean":
		return "bool"
	case "integer":
		if s.isNullable() {
			return "*int64"
		}
		return "int64"
	case "number":
		if s.isNullable() {
			return "*float64"
		}
		return "float64"
	case "array":
		var items schema
		if err := json.Unmarshal(s.Items, &items); err != nil {
			panic(err)
		}
		return "[]" + g.goType(&items, false)
	case "object":
		var values schema
		if len(s.AdditionalProperties) > 0 && json.Unmarshal(s.AdditionalProperties, &values) == nil {
			return "map[string]" + g.goType(&values, false)
		}
		return "map[string]json.RawMessage"
	}
	panic(fmt.Sprintf("the schema type %q has no Go form yet", types[0]))
}

func (g *generator) fields(properties map[string]*schema, required []string) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := properties[name]
		isRequired := slices.Contains(required, name)
		tag := name
		if !isRequired {
			tag += ",omitempty"
		}
		g.comment("\t", "", property.Description)
		fmt.Fprintf(&g.out, "\t%s %s `json:%q`\n", exported(name), g.goType(property, !isRequired), tag)
	}
}

func (g *generator) define(name string, s *schema) {
	switch {
	case len(words(s)) > 0:
		g.comment("", "Values of "+name, s.Description)
		g.out.WriteString("const (\n")
		for i, word := range words(s) {
			g.comment("\t", "", s.OneOf[i].Description)
			fmt.Fprintf(&g.out, "\t%s%s = %q\n", name, exported(word), word)
		}
		g.out.WriteString(")\n\n")
	case variants(s):
		g.comment("", name, s.Description+" Which fields are set depends on the kind.")
		fmt.Fprintf(&g.out, "type %s struct {\n", name)
		merged := map[string]*schema{}
		for _, each := range s.OneOf {
			maps.Copy(merged, each.Properties)
		}
		for _, key := range []string{"type", "kind"} {
			if each, ok := merged[key]; ok {
				merged[key] = &schema{Type: "string", Description: "Which of the kinds it is." + each.Description}
			}
		}
		g.fields(merged, []string{"type", "kind"})
		g.out.WriteString("}\n\n")
	case s.Properties != nil:
		g.comment("", name, s.Description)
		fmt.Fprintf(&g.out, "type %s struct {\n", name)
		g.fields(s.Properties, s.Required)
		g.out.WriteString("}\n\n")
	}
}

func generate(root string) ([]byte, error) {
	g := &generator{defs: map[string]*schema{}}
	var tags []string
	for _, file := range schemas {
		data, err := os.ReadFile(filepath.Join(root, "schemas", file))
		if err != nil {
			return nil, err
		}
		var s schema
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		maps.Copy(g.defs, s.Defs)
		if strings.Contains(file, "input") {
			continue
		}
		for _, line := range s.AnyOf {
			properties := s.Defs[line.Ref[strings.LastIndex(line.Ref, "/")+1:]].Properties
			marker := properties["type"]
			if marker == nil {
				marker = properties["object"]
			}
			if marker != nil && marker.Ref != "" {
				tags = append(tags, words(s.Defs[marker.Ref[strings.LastIndex(marker.Ref, "/")+1:]])...)
			}
		}
	}
	slices.Sort(tags)
	g.out.WriteString("// Code generated from schemas/ by sdk/codegen/go.go; DO NOT EDIT.\n\npackage wire\n\nimport \"encoding/json\"\n\n")
	g.out.WriteString("// StreamTypes holds the `type` (or `object`) of every line that a worker writes.\nvar StreamTypes = []string{\n")
	for _, tag := range slices.Compact(tags) {
		fmt.Fprintf(&g.out, "\t%q,\n", tag)
	}
	g.out.WriteString("}\n\n")
	for _, name := range slices.Sorted(maps.Keys(g.defs)) {
		g.define(name, g.defs[name])
	}
	return format.Source(g.out.Bytes())
}

func main() {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..")
	target := filepath.Join(root, "sdk", "go", "wire", "generated.go")
	text, err := generate(root)
	if err == nil && slices.Contains(os.Args[1:], "--check") {
		committed, _ := os.ReadFile(target)
		if !bytes.Equal(committed, text) {
			err = fmt.Errorf("sdk/go/wire/generated.go is stale: run `go run sdk/codegen/go.go`")
		}
	} else if err == nil {
		err = os.WriteFile(target, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "codegen:", err)
		os.Exit(1)
	}
}

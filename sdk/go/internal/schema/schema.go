// Package schema derives JSON Schemas from Go types and checks values against them.
package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Schema is the part of JSON Schema that Go types need.
type Schema struct {
	Type                 any                `json:"type,omitempty"`
	Description          string             `json:"description,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Enum                 []any              `json:"enum,omitempty"`
	Format               string             `json:"format,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
}

// Provider is a type that describes itself. Values of it are checked by its own UnmarshalJSON, if it has one.
type Provider interface {
	JSONSchema() json.RawMessage
}

var (
	timeType          = reflect.TypeFor[time.Time]()
	rawType           = reflect.TypeFor[json.RawMessage]()
	providerType      = reflect.TypeFor[Provider]()
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// For returns the schema of a type, and as JSON what the type itself provides, if it does.
func For(t reflect.Type) (*Schema, json.RawMessage, error) {
	for _, each := range []reflect.Type{t, reflect.PointerTo(t)} {
		if each.Implements(providerType) {
			value := reflect.New(t)
			if each.Kind() != reflect.Pointer || t.Kind() == reflect.Pointer {
				value = value.Elem()
			}
			return nil, value.Interface().(Provider).JSONSchema(), nil
		}
	}
	derived, err := derive(t, nil)
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(derived)
	return derived, text, err
}

func derive(t reflect.Type, parents []reflect.Type) (*Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if slices.Contains(parents, t) {
		return nil, fmt.Errorf("the type %v contains itself; give it a JSONSchema method", t)
	}
	switch {
	case t == timeType:
		return &Schema{Type: "string", Format: "date-time"}, nil
	case t == rawType:
		return &Schema{}, nil
	case t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType):
		// What it encodes as is unknown.
		return &Schema{}, nil
	case t.Implements(textMarshalerType):
		return &Schema{Type: "string"}, nil
	}
	parents = append(parents, t)
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}, nil
	case reflect.String:
		return &Schema{Type: "string"}, nil
	case reflect.Interface:
		return &Schema{}, nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &Schema{Type: "string", Format: "byte"}, nil
		}
		items, err := derive(t.Elem(), parents)
		return &Schema{Type: "array", Items: items}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("the map %v has keys that are not strings", t)
		}
		values, err := derive(t.Elem(), parents)
		return &Schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		s := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: false}
		return s, s.addFields(t, parents)
	default:
		return nil, fmt.Errorf("a value of the type %v has no JSON form", t)
	}
}

// addFields adds the fields of a struct as encoding/json names them. A field is optional if it is a pointer or has
// omitempty or omitzero. The tag `jsonschema` is its description, `enum` a list of its values with commas.
func (s *Schema) addFields(t reflect.Type, parents []reflect.Type) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if field.Anonymous && name == "" && inner.Kind() == reflect.Struct && inner != timeType {
			if err := s.addFields(inner, parents); err != nil {
				return err
			}
			continue
		}
		if name == "-" && options == "" || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		property, err := derive(field.Type, parents)
		if err != nil {
			return fmt.Errorf("%v.%s: %w", t, field.Name, err)
		}
		property.Description = field.Tag.Get("jsonschema")
		if values, ok := field.Tag.Lookup("enum"); ok {
			for value := range strings.SplitSeq(values, ",") {
				property.Enum = append(property.Enum, value)
			}
		}
		isOptional := field.Type.Kind() == reflect.Pointer || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		s.Properties[name] = property
		if isOptional {
			if kind, ok := property.Type.(string); ok && field.Type.Kind() == reflect.Pointer {
				property.Type = []string{kind, "null"}
			}
		} else {
			s.Required = append(s.Required, name)
		}
	}
	return nil
}

// Check reports the first place at which a value does not fit.
func (s *Schema) Check(data []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	return s.check(value, "")
}

func (s *Schema) check(value any, at string) error {
	if !s.allows(kindOf(value)) {
		return fmt.Errorf("%s is %s and must be %v", place(at), kindOf(value), s.Type)
	}
	if s.Enum != nil && !slices.Contains(s.Enum, value) {
		return fmt.Errorf("%s must be one of %v", place(at), s.Enum)
	}
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if s.Items != nil {
				if err := s.Items.check(item, fmt.Sprintf("%s/%d", at, i)); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := value[name]; !ok {
				return fmt.Errorf("%s lacks %q", place(at), name)
			}
		}
		for name, item := range value {
			property := s.Properties[name]
			if property == nil {
				switch further := s.AdditionalProperties.(type) {
				case *Schema:
					property = further
				case bool:
					return fmt.Errorf("%s has the unknown field %q", place(at), name)
				default:
					continue
				}
			}
			if err := property.check(item, at+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func place(at string) string {
	if at == "" {
		return "the value"
	}
	return at
}

func (s *Schema) allows(kind string) bool {
	switch types := s.Type.(type) {
	case string:
		return types == kind || types == "number" && kind == "integer"
	case []string:
		return slices.Contains(types, kind) || slices.Contains(types, "number") && kind == "integer"
	}
	return true
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if _, err := value.Int64(); err == nil {
			return "integer"
		}
		if f, err := value.Float64(); err == nil && f == float64(int64(f)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

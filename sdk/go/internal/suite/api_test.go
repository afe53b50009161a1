package suite

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// publicNames returns the exported names of the SDK: types, functions, methods as Type.Method, constants and variables.
func publicNames(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(), "sdk", "go", "*.go"))
	must(t, err)
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		must(t, err)
		for _, declaration := range file.Decls {
			switch declared := declaration.(type) {
			case *ast.FuncDecl:
				names = append(names, functionName(t, declared))
			case *ast.GenDecl:
				names = append(names, valueNames(t, declared)...)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return names
}

func functionName(t *testing.T, declared *ast.FuncDecl) string {
	t.Helper()
	name := declared.Name.Name
	if !declared.Name.IsExported() {
		return ""
	}
	if declared.Recv != nil {
		receiver := declared.Recv.List[0].Type
		if pointer, ok := receiver.(*ast.StarExpr); ok {
			receiver = pointer.X
		}
		identifier, ok := receiver.(*ast.Ident)
		if !ok || !identifier.IsExported() {
			return ""
		}
		name = identifier.Name + "." + name
	}
	if declared.Doc == nil && !slices.Contains([]string{"Error", "Unwrap"}, declared.Name.Name) {
		t.Errorf("%s has no comment", name)
	}
	return name
}

func valueNames(t *testing.T, declared *ast.GenDecl) []string {
	t.Helper()
	var names []string
	for _, spec := range declared.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				names = append(names, spec.Name.Name)
				if declared.Doc == nil && spec.Doc == nil {
					t.Errorf("%s has no comment", spec.Name.Name)
				}
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// testSources returns the text of every test of the SDK by its name.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root(), "sdk", "go"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "api_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parts := regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllStringSubmatchIndex(string(text), -1)
		for i, part := range parts {
			end := len(text)
			if i+1 < len(parts) {
				end = parts[i+1][0]
			}
			sources[string(text[part[2]:part[3]])] += string(text[part[0]:end])
		}
		return nil
	})
	must(t, err)
	return sources
}

// Methods that the SDK or the language calls.
var calledImplicitly = map[string]string{
	"TurnError.Is": "errors.Is", "Raw.MarshalJSON": "json.Marshal", "WorkerError.Error": "err.Error()", "TurnError.Error": "err.Error()", "RequestError.Error": "err.Error()",
}

func coveringTest(name string, sources map[string]string) string {
	owner, member, isMethod := strings.Cut(name, ".")
	pattern := `\bqwen\.` + name + `\b`
	if isMethod {
		pattern = `\.` + member + `\(`
	}
	uses := regexp.MustCompile(pattern)
	inside := regexp.MustCompile(`\b` + name + `\b`)
	var tests []string
	for test, source := range sources {
		if strings.HasPrefix(test, "Test") && test != "TestMain" && (uses.MatchString(source) || !isMethod && inside.MatchString(source)) {
			tests = append(tests, test)
		}
	}
	if len(tests) == 0 {
		// A value of the type is used by a helper of a test, or the type appears only as the result of a function.
		for test, source := range sources {
			if uses.MatchString(source) || isMethod && strings.Contains(source, owner) && strings.Contains(source, member) {
				tests = append(tests, test)
			}
		}
	}
	if len(tests) == 0 {
		return ""
	}
	return slices.Min(tests)
}

func TestTheListOfPublicNamesIsCompleteAndEachNameHasATest(t *testing.T) {
	sources := testSources(t)
	var b strings.Builder
	b.WriteString("# Public names of the Go SDK\n\nEach with a test that uses it. `QWEN_BLESS=1 sdk/go/check -run PublicNames ./internal/suite` writes this file.\n\n| name | test |\n|---|---|\n")
	for _, name := range publicNames(t) {
		if _, ok := calledImplicitly[name]; ok || strings.HasSuffix(name, ".Error") || strings.HasSuffix(name, ".Unwrap") {
			continue
		}
		test := coveringTest(name, sources)
		if test == "" {
			t.Errorf("no test uses %s", name)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", name, test)
	}
	path := filepath.Join(root(), "sdk", "go", "API.md")
	if os.Getenv("QWEN_BLESS") != "" {
		must(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	written, err := os.ReadFile(path)
	must(t, err)
	if string(written) != b.String() {
		t.Error("sdk/go/API.md is stale")
	}
}

// Renders cases of Go's templates with Go's own text/template, and the functions that Ollama adds.
// Usage: go run tools/goldens/go_templates/main.go < cases.json > goldens.json, both in
// tests/units/go_template/goldens. Go 1.19 of Debian 12 made them.
package main

import (
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type golden struct {
	Template string `json:"template"`
	Output   string `json:"output"`
	Error    string `json:"error,omitempty"`
}

type cases struct {
	Data      map[string]any `json:"data"`
	Templates []string       `json:"templates"`
}

type goldens struct {
	Data  map[string]any `json:"data"`
	Cases []golden       `json:"cases"`
}

func render(one *golden, data map[string]any) error {
	functions := template.FuncMap{
		"json": func(value any) (string, error) {
			out, err := json.Marshal(value)
			return string(out), err
		},
	}
	parsed, err := template.New("").Option("missingkey=zero").Funcs(functions).Parse(one.Template)
	if err != nil {
		return err
	}
	var out strings.Builder
	err = parsed.Execute(&out, data)
	one.Output = out.String()
	return err
}

func main() {
	var in cases
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	made := goldens{Data: in.Data}
	for _, text := range in.Templates {
		one := golden{Template: text}
		if err := render(&one, in.Data); err != nil {
			one.Output, one.Error = "", err.Error()
		}
		made.Cases = append(made.Cases, one)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	if err := out.Encode(made); err != nil {
		panic(err)
	}
}

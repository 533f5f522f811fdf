// Renders a chart as `helm template` does, with Go's templates and Sprig, for where helm is not installed: it builds in
// seconds. It has what deploy/chart uses of Helm and no more, and does not look at values.schema.json.
//
//	render CHART NAMESPACE VERSION [VALUES]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// files are those of a chart, by path.
type files map[string][]byte

func (all files) Get(name string) string { return string(all[name]) }

func (all files) Glob(pattern string) files {
	found := files{}
	for name, content := range all {
		if matches, _ := filepath.Match(pattern, name); matches {
			found[name] = content
		}
	}
	return found
}

func read(chart string, patterns ...string) (files, error) {
	all := files{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(chart, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(chart, path)
			if err != nil {
				return nil, err
			}
			all[filepath.ToSlash(name)] = content
		}
	}
	return all, nil
}

func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		if known, wasMap := into[key].(map[string]any); isMap && wasMap {
			merge(known, inner)
		} else {
			into[key] = value
		}
	}
}

// functions are those that Helm adds to Sprig's.
func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	known["toYaml"] = func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	known["toJson"] = func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	known["fromYaml"] = func(text string) (found map[string]any, err error) {
		return found, yaml.Unmarshal([]byte(text), &found)
	}
	known["fromYamlArray"] = func(text string) (found []any, err error) {
		return found, yaml.Unmarshal([]byte(text), &found)
	}
	known["include"] = func(name string, given any) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, given)
		return text.String(), err
	}
	known["required"] = func(message string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	known["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	return known
}

func render(chart, namespace, version, given string) error {
	values, over := map[string]any{}, map[string]any{}
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	if err := errors.Join(yaml.Unmarshal(text, &values), yaml.Unmarshal([]byte(given), &over)); err != nil {
		return err
	}
	merge(values, over)
	others, err := read(chart, "manifests/*", "dashboards/*")
	if err != nil {
		return err
	}
	templates, err := read(chart, "templates/*")
	if err != nil {
		return err
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	for name, content := range templates {
		if _, err := all.New(name).Parse(string(content)); err != nil {
			return err
		}
	}
	about := map[string]any{
		"Values":  values,
		"Files":   others,
		"Release": map[string]any{"Name": "kueuecore", "Namespace": namespace},
		"Chart":   map[string]any{"Name": "kueuecore", "Version": version, "AppVersion": version},
	}
	for name := range templates {
		var text strings.Builder
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		if err := all.ExecuteTemplate(&text, name, about); err != nil {
			return err
		}
		out := os.Stdout
		if strings.HasSuffix(name, ".txt") {
			out = os.Stderr
		}
		if _, err := fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, text.String()); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	arguments := append(os.Args[1:], "", "", "", "")
	if err := render(arguments[0], arguments[1], arguments[2], arguments[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

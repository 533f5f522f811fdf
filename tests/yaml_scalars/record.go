// Records how Kubernetes reads YAML: each line of scalars.txt as a value and as a key, and each document of
// documents.txt (between lines of %%), as JSON by the library that kubectl uses, or its error.
//
//	go run . > recorded.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

type answer struct {
	As    string          `json:"as"`
	YAML  string          `json:"yaml"`
	JSON  json.RawMessage `json:"json,omitempty"`
	Error string          `json:"error,omitempty"`
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	record := func(as, text string) {
		converted, err := yaml.YAMLToJSON([]byte(text))
		it := answer{As: as, YAML: text, JSON: converted}
		if err != nil {
			it.JSON, it.Error = nil, err.Error()
		}
		if err := encoder.Encode(it); err != nil {
			log.Fatal(err)
		}
	}
	for _, scalar := range parts("scalars.txt", "\n") {
		record("value", "v: "+scalar+"\n")
		record("key", scalar+": v\n")
	}
	for _, document := range parts("documents.txt", "%%\n") {
		record("document", document)
	}
}

func parts(file, separator string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), separator), separator)
}

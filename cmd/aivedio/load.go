package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/caarlos0/env/v11"
	"gopkg.in/yaml.v3"
)

// LoadConfig reads the file, if one is named, and the environment over the
// defaults. Unknown keys are faults: a typing error must not become a default. The
// error joins every fault; the configuration then holds what could be read, so
// that its other faults can be reported with them. Nothing can of a file that is
// unreadable.
func LoadConfig(file string) (Config, error) {
	cfg := DefaultConfig()
	var faults []error
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return cfg, unreadable{fmt.Errorf("config file: %w", err)}
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		dec.KnownFields(true)
		var settings *yaml.TypeError
		switch err := dec.Decode(&cfg); {
		case errors.As(err, &settings):
			for _, text := range settings.Errors {
				faults = append(faults, yamlFault(filepath.Base(file), text))
			}
		case err != nil && !errors.Is(err, io.EOF):
			return cfg, unreadable{yamlFault(filepath.Base(file), err.Error())}
		}
	}
	if err := env.Parse(&cfg); err != nil {
		faults = append(faults, envFaults(err)...)
	}
	return cfg, errors.Join(faults...)
}

// unreadable is a file that is absent or no YAML.
type unreadable struct{ error }

// checkedConfig loads a configuration, applies the flags and reports every fault
// of it at once.
func checkedConfig(file string, flags func(*Config)) (Config, error) {
	cfg, err := LoadConfig(file)
	if errors.As(err, &unreadable{}) {
		return cfg, err
	}
	if flags != nil {
		flags(&cfg)
	}
	_, providers := newProviders(cfg)
	if err := errors.Join(err, cfg.Validate(), providers); err != nil {
		return cfg, fmt.Errorf("the configuration has faults:\n%w", err)
	}
	return cfg, nil
}

// The forms of the YAML library's messages.
var (
	yamlLine    = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (.+) not found in type .*$`)
	yamlType    = regexp.MustCompile("(?s)^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.+)$")
)

// yamlFault tells a fault of a file by line and setting, without Go's types.
func yamlFault(file, text string) error {
	where := file
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		where, text = file+" line "+m[1], m[2]
	}
	if m := yamlUnknown.FindStringSubmatch(text); m != nil {
		text = m[1] + " is not a setting"
	} else if m := yamlType.FindStringSubmatch(text); m != nil {
		text = yamlValue(m[1], m[2]) + " is not " + kindWords(m[3])
	}
	return fmt.Errorf("%s: %s", where, strings.TrimPrefix(text, "yaml: "))
}

// yamlValue names a value that the file holds.
func yamlValue(tag, value string) string {
	switch {
	case value != "":
		return fmt.Sprintf("%q", value)
	case tag == "seq":
		return "a list"
	case tag == "map":
		return "a group of settings"
	}
	return "the value"
}

// kindWords says what a Go type wants, in the words of the documentation.
func kindWords(goType string) string {
	switch {
	case goType == "time.Duration":
		return "a duration such as 20s"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string" || goType == "main.Role":
		return "a text"
	}
	return "a group of settings"
}

// envFaults tells which variable has a fault.
func envFaults(err error) []error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []error{fmt.Errorf("environment: %w", err)}
	}
	var faults []error
	for _, err := range all.Errors {
		var parse env.ParseError
		if !errors.As(err, &parse) {
			faults = append(faults, fmt.Errorf("environment: %w", err))
			continue
		}
		name := variableOf(reflect.TypeFor[Config](), parse.Name, parse.Type)
		faults = append(faults, fmt.Errorf("%s: %q is not %s", name, os.Getenv(name), kindWords(parse.Type.String())))
	}
	return faults
}

// variableOf finds the variable of a field; name and type together are unique.
func variableOf(config reflect.Type, name string, kind reflect.Type) string {
	for i := range config.NumField() {
		f := config.Field(i)
		if f.Name == name && f.Type == kind {
			return f.Tag.Get("env")
		}
		if f.Type.Kind() == reflect.Struct {
			if found := variableOf(f.Type, name, kind); found != "" {
				return found
			}
		}
	}
	return ""
}

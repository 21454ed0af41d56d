package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// directive is what one job asks for itself.
type directive struct {
	// own holds the values of the keys in set; other keys follow the vendor's faults.
	own Faults
	set map[string]bool
	// queue, run and ttl override the configured durations when not nil.
	queue, run, ttl *time.Duration
	// key names the job in Stats.CreatesByKey.
	key string
	// shape is how Replicate's output is spelled: string, array or object.
	shape string
}

var (
	directivePattern = regexp.MustCompile(`\[sim:([^\]=]+)(?:=([^\]]*))?\]`)
	outputShapes     = []string{"string", "array", "object"}
	// jobWords are the words of a job that are no faults.
	jobWords = []string{"queue", "run", "ttl", "key", "output"}
)

// parseDirective reads the words in the prompt and the object, which wins.
// The object may be nil. The error names the word that is wrong.
func parseDirective(prompt string, object json.RawMessage) (directive, error) {
	d := directive{set: map[string]bool{}, shape: outputShapes[0]}
	for _, m := range directivePattern.FindAllStringSubmatch(prompt, -1) {
		var value any = m[2]
		if m[2] == "" {
			value = true
		}
		if err := d.put(m[1], value); err != nil {
			return directive{}, err
		}
	}
	if len(object) > 0 && string(object) != "null" {
		var in map[string]any
		if err := json.Unmarshal(object, &in); err != nil {
			return directive{}, fmt.Errorf("sim: want an object of faults: %w", err)
		}
		for _, key := range slices.Sorted(maps.Keys(in)) {
			if err := d.put(key, in[key]); err != nil {
				return directive{}, err
			}
		}
	}
	if err := d.own.Validate(); err != nil {
		return directive{}, fmt.Errorf("sim: %w", err)
	}
	return d, nil
}

func (d *directive) put(key string, value any) error {
	switch key {
	case "queue":
		return putDuration(&d.queue, key, value)
	case "run":
		return putDuration(&d.run, key, value)
	case "ttl":
		return putDuration(&d.ttl, key, value)
	case "key":
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("sim: key: want text")
		}
		d.key = text
		return nil
	case "output":
		text, _ := value.(string)
		if !slices.Contains(outputShapes, text) {
			return fmt.Errorf("sim: output: want one of %v", outputShapes)
		}
		d.shape = text
		return nil
	case "fail":
		if text, ok := value.(string); ok && slices.Contains(failKinds, text) {
			d.own.FailKind, d.set["fail_kind"] = text, true
			value = true
		}
	}
	if err := d.own.set(key, value); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if long, ok := faultWords[key]; ok {
		key = long
	}
	d.set[key] = true
	return nil
}

func putDuration(to **time.Duration, key string, value any) error {
	v, err := asDuration(value)
	if err != nil {
		return fmt.Errorf("sim: %s: %w", key, err)
	}
	*to = &v
	return nil
}

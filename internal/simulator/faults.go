package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Faults says how badly the vendor behaves. The zero value behaves well.
//
// Every float is a probability from 0 to 1; see the package comment for what
// each fault does and when it is drawn. As JSON the keys are the tags below,
// rates may also be true or false, and durations are strings such as "2s".
// Decoding JSON into a Faults changes only the keys that are present and
// refuses unknown ones.
type Faults struct {
	DropWebhook           float64 `json:"drop_webhook" placeholder:"RATE" help:"Webhook is never sent."`
	DelayWebhook          float64 `json:"delay_webhook" placeholder:"RATE" help:"Webhook is sent late (see delay-for)."`
	DuplicateWebhook      float64 `json:"duplicate_webhook" placeholder:"RATE" help:"Webhook is sent twice under one id."`
	DuplicateWebhookNewID float64 `json:"duplicate_webhook_new_id" placeholder:"RATE" help:"Webhook is sent again under a new id."`
	ReorderWebhook        float64 `json:"reorder_webhook" placeholder:"RATE" help:"An older status arrives after a newer one."`
	MalformedWebhook      float64 `json:"malformed_webhook" placeholder:"RATE" help:"Webhook body is cut in half."`
	BadSignature          float64 `json:"bad_signature" placeholder:"RATE" help:"Webhook is signed with a wrong key."`
	StaleWebhook          float64 `json:"stale_webhook" placeholder:"RATE" help:"Webhook timestamp is ten minutes old."`
	ForeignEvent          float64 `json:"foreign_event" placeholder:"RATE" help:"OpenAI's endpoint also gets an unrelated event."`

	WebhooksOff   float64 `json:"webhooks_off" placeholder:"RATE" help:"Job sends no webhook at all."`
	EarlyCallback float64 `json:"early_callback" placeholder:"RATE" help:"First webhook precedes the answer to create."`
	InstantResult float64 `json:"instant_result" placeholder:"RATE" help:"Create answers with a finished job."`
	Contradict    float64 `json:"contradict" placeholder:"RATE" help:"Opposite terminal first, then the true one."`
	EmptyOutput   float64 `json:"empty_output" placeholder:"RATE" help:"Success without output."`
	Fail          float64 `json:"fail" placeholder:"RATE" help:"Job fails (see fail-kind)."`
	Abort         float64 `json:"abort" placeholder:"RATE" help:"Job ends as aborted."`
	UnknownStatus float64 `json:"unknown_status" placeholder:"RATE" help:"Undocumented status word while running."`
	SynonymStatus float64 `json:"synonym_status" placeholder:"RATE" help:"Status words of compatible gateways."`
	FineProgress  float64 `json:"fine_progress" placeholder:"RATE" help:"Progress event at every percent."`
	ManyBars      float64 `json:"many_bars" placeholder:"RATE" help:"Two progress bars in the log."`
	NotFound      float64 `json:"not_found" placeholder:"RATE" help:"Queries answer 404 after create (see not-found-for)."`

	Create429       float64 `json:"create_429" placeholder:"RATE" help:"Create answers 429."`
	Create5xx       float64 `json:"create_5xx" name:"create-5xx" placeholder:"RATE" help:"Create answers 5xx."`
	CreateHang      float64 `json:"create_hang" placeholder:"RATE" help:"Create hangs and accepts nothing."`
	LostResponse    float64 `json:"lost_response" placeholder:"RATE" help:"Create is accepted but its answer lost."`
	CreateMalformed float64 `json:"create_malformed" placeholder:"RATE" help:"Create answers with half a body."`
	FailQuery       float64 `json:"fail_query" placeholder:"RATE" help:"Query answers 429, 5xx or closes the connection."`
	Query429        float64 `json:"query_429" placeholder:"RATE" help:"Query answers 429."`
	Query5xx        float64 `json:"query_5xx" name:"query-5xx" placeholder:"RATE" help:"Query answers 5xx."`
	Query401        float64 `json:"query_401" placeholder:"RATE" help:"Query answers 401 to a good key."`
	Query404        float64 `json:"query_404" placeholder:"RATE" help:"Query answers 404 for a job that is there."`
	QuerySlow       float64 `json:"query_slow" placeholder:"RATE" help:"Query answers late (see slow-for)."`
	QueryHang       float64 `json:"query_hang" placeholder:"RATE" help:"Query hangs."`
	QueryMalformed  float64 `json:"query_malformed" placeholder:"RATE" help:"Query answers with half a body."`
	FailCancel      float64 `json:"fail_cancel" placeholder:"RATE" help:"Cancel answers 5xx."`
	IgnoreCancel    float64 `json:"ignore_cancel" placeholder:"RATE" help:"Cancel answers 200 and cancels nothing."`
	FailDownload    float64 `json:"fail_download" placeholder:"RATE" help:"Output answers 5xx."`

	// FailKind is moderation, unavailable or text; empty draws one per job.
	FailKind string `json:"fail_kind" help:"moderation, unavailable or text; empty draws one."`
	// DelayFor is the middle of a late webhook's delay; zero means 2 s.
	DelayFor time.Duration `json:"delay_for" help:"Middle of a late webhook's delay (2s)."`
	// ContradictAfter separates two contradicting terminals; zero means 500 ms.
	ContradictAfter time.Duration `json:"contradict_after" help:"Time between contradicting terminals (500ms)."`
	// NotFoundFor is how long a new job stays unknown to queries; zero means 2 s.
	NotFoundFor time.Duration `json:"not_found_for" help:"How long a new job answers 404 (2s)."`
	// HangFor bounds a hanging call; zero means 60 s.
	HangFor time.Duration `json:"hang_for" help:"How long a call hangs (60s)."`
	// SlowFor is how late a slow query is answered; zero means 5 s.
	SlowFor time.Duration `json:"slow_for" help:"How late a slow query is answered (5s)."`
	// RetryAfter is what a 429 tells the caller, in whole seconds; zero means 1 s.
	RetryAfter time.Duration `json:"retry_after" help:"Retry-After of a 429 (1s)."`
}

// The failures a vendor can report for a job.
const (
	failModeration  = "moderation"
	failUnavailable = "unavailable"
	failText        = "text"
)

var failKinds = []string{failModeration, failUnavailable, failText}

// faultDurations holds the meaning of a zero duration.
var faultDurations = map[string]time.Duration{
	"delay_for":        2 * time.Second,
	"contradict_after": 500 * time.Millisecond,
	"not_found_for":    2 * time.Second,
	"hang_for":         time.Minute,
	"slow_for":         5 * time.Second,
	"retry_after":      time.Second,
}

// faultWords are the short forms accepted wherever a fault is named.
var faultWords = map[string]string{
	"drop": "drop_webhook", "delay": "delay_webhook", "duplicate": "duplicate_webhook",
	"duplicate_new_id": "duplicate_webhook_new_id", "reorder": "reorder_webhook",
	"malformed": "malformed_webhook", "empty": "empty_output", "off": "webhooks_off",
	"early": "early_callback", "instant": "instant_result", "lost": "lost_response",
}

// faultFields maps a JSON key to its field in Faults.
var faultFields = func() map[string]int {
	out := map[string]int{}
	for i, f := range slices.Collect(reflect.TypeFor[Faults]().Fields()) {
		out[f.Tag.Get("json")] = i
	}
	return out
}()

// Validate reports every rate outside 0 to 1, every negative duration and an
// unknown fail kind, joined into one error.
func (f Faults) Validate() error {
	var errs []error
	v := reflect.ValueOf(f)
	for _, key := range slices.Sorted(maps.Keys(faultFields)) {
		switch x := v.Field(faultFields[key]).Interface().(type) {
		case float64:
			if !(x >= 0 && x <= 1) {
				errs = append(errs, fmt.Errorf("%s: %v is not a rate from 0 to 1", key, x))
			}
		case time.Duration:
			if x < 0 || x > longest {
				errs = append(errs, fmt.Errorf("%s: %v is not from 0 to %v", key, x, longest))
			}
		case string:
			if x != "" && !slices.Contains(failKinds, x) {
				errs = append(errs, fmt.Errorf("%s: %q is none of %v", key, x, failKinds))
			}
		}
	}
	return errors.Join(errs...)
}

// MarshalJSON writes every key, durations as text.
func (f Faults) MarshalJSON() ([]byte, error) {
	out := make(map[string]any, len(faultFields))
	v := reflect.ValueOf(f)
	for key, i := range faultFields {
		out[key] = v.Field(i).Interface()
		if d, ok := out[key].(time.Duration); ok {
			out[key] = d.String()
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON merges the keys that are present into f and validates the
// result; f is unchanged when an error is returned.
func (f *Faults) UnmarshalJSON(data []byte) error {
	var in map[string]any
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	next := *f
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if err := next.set(key, in[key]); err != nil {
			return err
		}
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*f = next
	return nil
}

// set stores one value of JSON type (or directive text) under its key.
func (f *Faults) set(key string, value any) error {
	if long, ok := faultWords[key]; ok {
		key = long
	}
	if _, ok := faultFields[key]; !ok {
		return fmt.Errorf("%s: no such fault", key)
	}
	field := f.field(key)
	switch field.Interface().(type) {
	case float64:
		rate, err := asRate(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		field.SetFloat(rate)
	case time.Duration:
		d, err := asDuration(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		field.SetInt(int64(d))
	default:
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s: want text", key)
		}
		field.SetString(text)
	}
	return nil
}

func asRate(value any) (float64, error) {
	switch x := value.(type) {
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	case float64:
		return x, nil
	case string:
		if b, err := strconv.ParseBool(x); err == nil {
			return asRate(b)
		}
		return strconv.ParseFloat(x, 64)
	default:
		return 0, errors.New("want a rate from 0 to 1, or true")
	}
}

func asDuration(value any) (time.Duration, error) {
	text, ok := value.(string)
	if !ok {
		return 0, errors.New(`want a duration such as "2s"`)
	}
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d > longest) {
		err = fmt.Errorf("a duration is from 0 to %v", longest)
	}
	return d, err
}

// rate is the probability under a key.
func (f *Faults) rate(key string) float64 { return f.field(key).Float() }

// field finds the value under a key; an unknown key is a programming error.
func (f *Faults) field(key string) reflect.Value {
	i, ok := faultFields[key]
	if !ok {
		panic("simulator: no fault named " + key)
	}
	return reflect.ValueOf(f).Elem().Field(i)
}

// duration is the length under a key, or its default.
func (f *Faults) duration(key string) time.Duration {
	if d := f.field(key).Int(); d > 0 {
		return time.Duration(d)
	}
	return faultDurations[key]
}

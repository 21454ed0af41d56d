package app

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aivedio/aivedio/ports"
)

// The limits of the small fields, in bytes.
const (
	maxModel = 200
	maxURL   = 2048
	maxKey   = 255
	maxWord  = 20
)

// validate gathers every fault of a command.
func (s *Submit) validate(cmd CreateCommand) error {
	faults := &FieldErrors{}
	_, known := s.deps.Vendors.Vendor(cmd.Provider)
	faults.check(known && len(s.deps.Vendors.Accounts(cmd.Provider)) > 0, "provider", "unknown",
		"use one of: "+strings.Join(s.deps.Vendors.Names(), ", "))
	faults.check(cmd.Model != "" && len(cmd.Model) <= maxModel && printable(cmd.Model), "model", "invalid",
		fmt.Sprintf("name a model in at most %d printable characters", maxModel))
	checkIdempotencyKey(faults, cmd.IdempotencyKey)
	s.validateInput(faults, cmd.Input)
	return faults.err()
}

func (s *Submit) validateInput(faults *FieldErrors, in ports.TaskInput) {
	faults.check(strings.TrimSpace(in.Prompt) != "" || in.ImageURL != "", "input.prompt", "required",
		"give a prompt, an image_url or both")
	faults.check(clean(in.Prompt), "input.prompt", "invalid", "use valid UTF-8 without NUL characters")
	faults.check(utf8.RuneCountInString(in.Prompt) <= s.cfg.MaxPrompt, "input.prompt", "too_long",
		fmt.Sprintf("shorten it to %d characters", s.cfg.MaxPrompt))
	faults.check(s.imageURL(in.ImageURL), "input.image_url", "invalid",
		fmt.Sprintf("use an absolute %s URL of at most %d ASCII characters that the vendor can fetch, without a password", s.imageSchemes(), maxURL))
	faults.check(in.DurationSeconds >= 0 && in.DurationSeconds <= s.cfg.MaxDuration, "input.duration_seconds", "out_of_range",
		fmt.Sprintf("use whole seconds from 1 to %d, or leave it out", s.cfg.MaxDuration))
	faults.check(aspectRatio(in.AspectRatio), "input.aspect_ratio", "invalid", `use the form "16:9"`)
	faults.check(word(in.Resolution), "input.resolution", "invalid", `use the form "1080p" or "1280x720"`)
	s.object(faults, "input.extra", in.Extra)
	s.object(faults, "metadata", in.Metadata)
}

// object checks a JSON object of the client's own.
func (s *Submit) object(faults *FieldErrors, field string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	if len(raw) > s.cfg.MaxObject {
		faults.check(false, field, "too_long", fmt.Sprintf("shorten it to %d bytes", s.cfg.MaxObject))
		return
	}
	fault := objectFault(raw)
	faults.check(fault == "", field, "invalid", fault)
}

// imageSchemes are the schemes that imageURL takes.
func (s *Submit) imageSchemes() string {
	if s.cfg.PlainImages {
		return "http or https"
	}
	return "https"
}

func (s *Submit) imageURL(raw string) bool {
	if raw == "" {
		return true
	}
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxURL || !printable(raw) || strings.Contains(raw, " ") || u.Hostname() == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || (u.Scheme == "http" && s.cfg.PlainImages)
}

func aspectRatio(s string) bool {
	if s == "" {
		return true
	}
	w, h, ok := strings.Cut(s, ":")
	return ok && side(w) && side(h)
}

// side reads one side of a ratio: 1 to 99.
func side(s string) bool {
	n, err := strconv.ParseUint(s, 10, 8)
	return err == nil && n >= 1 && n <= 99 && s[0] != '0'
}

// word accepts what vendors call resolutions: letters, digits and separators.
func word(s string) bool {
	return len(s) <= maxWord && strings.Trim(strings.ToLower(s), "0123456789abcdefghijklmnopqrstuvwxyz:_-") == ""
}

// checkIdempotencyKey allows what an HTTP header can carry.
func checkIdempotencyKey(faults *FieldErrors, key string) {
	faults.check(len(key) <= maxKey && printable(key), "Idempotency-Key", "invalid",
		fmt.Sprintf("use at most %d printable ASCII characters", maxKey))
}

// printable reports whether s is visible ASCII.
func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
}

// clean reports whether PostgreSQL can keep s as text.
func clean(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

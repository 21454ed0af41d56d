package jsonbody

import (
	"fmt"
	"slices"
	"strings"
)

// Fields is an object on its way to a vendor.
type Fields map[string]any

// SetText sets a text that is not empty.
func (f Fields) SetText(name, value string) {
	if value != "" {
		f[name] = value
	}
}

// callbackNames are the names, without case and separators, under which vendors
// take the address that they report to. It is never the user's: such a field
// would be taken by the vendor and the news lost, or sent to somebody else.
var callbackNames = []string{
	"webhook", "webhookurl", "webhooks", "webhookconfig", "webhookeventsfilter", "falwebhook",
	"callback", "callbackurl", "notifyurl", "notifyhook", "notificationurl",
}

// Merge adds the user's extra fields under the adapter's own: a name that the
// adapter has set, that it reserves, or that means a callback address is not
// taken from the user. extra is a JSON object or nil; anything else is an error.
// The values pass unread, so a number keeps all its digits.
func (f Fields) Merge(extra []byte, reserved ...string) error {
	if len(extra) == 0 || string(extra) == "null" {
		return nil
	}
	theirs, err := Parse(extra)
	if err != nil {
		return fmt.Errorf("extra: %w", err)
	}
	for name, value := range theirs {
		_, ours := f[name]
		if !ours && !slices.Contains(reserved, name) && !slices.Contains(callbackNames, bare(name)) {
			f[name] = value
		}
	}
	return nil
}

func bare(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

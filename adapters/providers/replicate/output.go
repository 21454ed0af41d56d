package replicate

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/aivedio/aivedio/domain"
)

// Bounds on what is looked for in an output, whose shape each model chooses.
const (
	maxOutputs     = 16
	maxOutputDepth = 4
)

// outputs finds the files in an output: a URL, a list, an object of them. Words
// that a text model writes are no outputs. Videos come first, otherwise in the
// vendor's order (that of the names in an object).
func outputs(raw json.RawMessage) []domain.OutputRef {
	if len(raw) == 0 {
		return nil
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	var found []domain.OutputRef
	collect(value, 0, &found)
	slices.SortStableFunc(found, func(a, b domain.OutputRef) int { return rank(a) - rank(b) })
	return found
}

func rank(o domain.OutputRef) int {
	if o.Kind == "video" {
		return 0
	}
	return 1
}

func collect(value any, depth int, found *[]domain.OutputRef) {
	if depth > maxOutputDepth || len(*found) >= maxOutputs {
		return
	}
	switch v := value.(type) {
	case string:
		if ref, ok := file(v); ok && !slices.ContainsFunc(*found, func(o domain.OutputRef) bool { return o.Ref == ref.Ref }) {
			*found = append(*found, ref)
		}
	case []any:
		for _, inner := range v {
			collect(inner, depth+1, found)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			collect(v[name], depth+1, found)
		}
	}
}

// file is the reference to a URL. Its name is the URL without the query, where
// vendors put signatures that change.
func file(text string) (domain.OutputRef, bool) {
	if len(text) > 8<<10 {
		return domain.OutputRef{}, false
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return domain.OutputRef{}, false
	}
	stable := *u
	stable.RawQuery, stable.Fragment, stable.RawFragment, stable.ForceQuery = "", "", "", false
	return domain.OutputRef{Kind: kind(u.Path), Ref: stable.String(), URL: u.String()}, true
}

// kind goes by the extension. Without one it is taken for a video: that is what
// was asked for, and the media role looks into the file anyway.
func kind(file string) string {
	switch strings.ToLower(path.Ext(file)) {
	case ".png", ".jpg", ".jpeg", ".webp", ".avif":
		return "image"
	case ".mp3", ".wav", ".ogg", ".flac", ".m4a":
		return "audio"
	case ".json", ".txt", ".srt", ".vtt", ".zip":
		return "file"
	default:
		return "video"
	}
}

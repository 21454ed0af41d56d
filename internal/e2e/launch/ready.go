package launch

import (
	"bytes"
	"strings"
	"sync"
)

// Ready is the line by which a process says that it answers:
//
//	ready http://127.0.0.1:8080 project=prj_… key=ak_…
type Ready struct {
	// URL is the base address, without a slash at its end.
	URL string
	// Fields are the words behind it. A value may hold spaces: it ends at the next
	// word with an equals sign.
	Fields map[string]string
}

// ParseReady reads a line; false when it is another one.
func ParseReady(line string) (Ready, bool) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "ready" {
		return Ready{}, false
	}
	r := Ready{URL: words[1], Fields: map[string]string{}}
	last := ""
	for _, w := range words[2:] {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case ok:
			last, r.Fields[name] = name, value
		case last != "":
			r.Fields[last] += " " + w
		}
	}
	return r, true
}

// readyWatch hands its input on and looks for the ready line in it.
type readyWatch struct {
	log   *log
	found chan Ready // buffered for the one line

	mu      sync.Mutex
	pending []byte
	done    bool
}

// Write implements io.Writer; it never fails.
func (w *readyWatch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.pending = append(w.pending, p...)
		w.scan()
	}
	return w.log.Write(p)
}

func (w *readyWatch) scan() {
	for {
		line, rest, ok := bytes.Cut(w.pending, []byte("\n"))
		if !ok {
			return
		}
		w.pending = rest
		if r, ok := ParseReady(string(line)); ok {
			w.found <- r
			w.done, w.pending = true, nil
			return
		}
	}
}

package launch

import "sync"

// keptLog is how much of the end of a process's output is kept, in bytes.
const keptLog = 256 << 10

// log keeps the end of what was written to it. Safe for concurrent use.
type log struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer; it never fails.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > 2*keptLog { // cut seldom, and by copying, so that the rest is freed
		l.text = append([]byte(nil), l.text[len(l.text)-keptLog:]...)
	}
	return len(p), nil
}

// String returns the end of the output.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-keptLog):])
}

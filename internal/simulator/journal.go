package simulator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// journal is the file behind Config.Journal. A nil journal keeps nothing. It is
// guarded by Simulator.mu, which also gives its lines their order.
//
// A line is one write without a buffer: when append returns, the operating
// system has it, and a killed process loses at most the line it was writing.
type journal struct {
	file   *os.File
	size   int64
	broken error // a failed write that could not be taken back
}

// readJournal reads the file at path; a file that does not exist is empty.
func readJournal(path string) (records []record, cut bool, err error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("journal: %w", err)
	}
	if records, cut, err = parseJournal(data); err != nil {
		return nil, false, fmt.Errorf("journal %s is damaged: %w; move the file away to start with a vendor that knows no job, or name another file", path, err)
	}
	return records, cut, nil
}

// writeJournal replaces the file at path by these records and opens it for more.
// The file holds prompts and callback addresses, so only its owner may read it.
func writeJournal(path string, records []record) (*journal, error) {
	tmp, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &journal{file: tmp}
	out := bufio.NewWriter(tmp)
	for _, r := range records {
		line, err := r.line()
		if err != nil {
			return nil, errors.Join(err, j.discard())
		}
		j.size += int64(len(line))
		if _, err := out.Write(line); err != nil {
			return nil, errors.Join(fmt.Errorf("journal: %w", err), j.discard())
		}
	}
	if err := out.Flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), j.discard())
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), j.discard())
	}
	return j, nil
}

// discard removes a file that did not become the journal.
func (j *journal) discard() error { return errors.Join(j.file.Close(), os.Remove(j.file.Name())) }

// line is the record as it is written, its end included.
func (r *record) line() ([]byte, error) {
	line := r.raw
	if line == nil {
		var err error
		if line, err = json.Marshal(r); err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
	}
	return append(line[:len(line):len(line)], '\n'), nil
}

// append writes one record. After an error the file is as it was before; if
// that cannot be had, every later append fails, for a line after a torn one
// would make the journal unreadable.
func (j *journal) append(r record) error {
	if j == nil {
		return nil
	}
	if j.broken != nil {
		return j.broken
	}
	line, err := r.line()
	if err != nil {
		return err
	}
	if _, err := j.file.Write(line); err != nil {
		err = fmt.Errorf("journal: %w", err)
		if back := j.rewind(); back != nil {
			j.broken = errors.Join(err, back)
		}
		return err
	}
	j.size += int64(len(line))
	return nil
}

// rewind takes a part of a line back.
func (j *journal) rewind() error {
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.file.Seek(j.size, 0)
	return err
}

// close ends the journal; later appends fail.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

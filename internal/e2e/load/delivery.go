package load

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/internal/simulator"
)

// Delivery is one signed webhook, ready to be sent.
type Delivery struct {
	// ID is the message id that is signed: what makes a delivery the same one.
	ID string
	// Task is the job's id at the vendor.
	Task string
	// BodyHash is the SHA-256 of the body.
	BodyHash [sha256.Size]byte

	request []byte
}

// Sender signs deliveries of one vendor account.
type Sender struct {
	// Host is the address in the Host header.
	Host string
	// Secret signs, in the form "whsec_…".
	Secret string
}

// Sign makes the whole request. path is that of the callback address. The
// receiver accepts it for some minutes around at. The error is about the secret.
func (s Sender) Sign(path, id string, job Job, at time.Time) (*Delivery, error) {
	body := job.Body()
	signature, err := simulator.Sign(s.Secret, id, at, body)
	if err != nil {
		return nil, fmt.Errorf("sign delivery: %w", err)
	}
	var b bytes.Buffer
	b.Grow(len(body) + len(path) + 400)
	b.WriteString("POST " + path + " HTTP/1.1\r\nHost: " + s.Host + "\r\nContent-Type: application/json\r\nWebhook-Id: " + id)
	b.WriteString("\r\nWebhook-Timestamp: " + strconv.FormatInt(at.Unix(), 10) + "\r\nWebhook-Signature: " + signature)
	b.WriteString("\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	b.Write(body)
	return &Delivery{ID: id, Task: job.ID, BodyHash: sha256.Sum256(body), request: b.Bytes()}, nil
}

// Job is what a delivery says: a prediction of Replicate that is being computed.
type Job struct {
	// ID is the vendor's.
	ID string
	// Progress is a percentage, shown as the vendor does: as a bar in the logs.
	Progress int
	// Began is when the vendor started it; whole milliseconds.
	Began time.Time
	// Size is the length of the body in bytes; the prompt fills it up. Less than
	// the body needs anyway changes nothing.
	Size int
}

// prediction is Replicate's JSON.
type prediction struct {
	ID          string            `json:"id"`
	Model       string            `json:"model"`
	Version     string            `json:"version"`
	Input       map[string]string `json:"input"`
	Logs        string            `json:"logs"`
	Output      *string           `json:"output"`
	DataRemoved bool              `json:"data_removed"`
	Error       *string           `json:"error"`
	Status      string            `json:"status"`
	CreatedAt   string            `json:"created_at"`
	StartedAt   string            `json:"started_at"`
}

// Body is the JSON.
func (j Job) Body() []byte {
	at := j.Began.UTC().Format("2006-01-02T15:04:05.000Z")
	p := prediction{
		ID: j.ID, Model: "sim/video", Version: "hidden", Input: map[string]string{"prompt": ""}, Status: "processing", CreatedAt: at, StartedAt: at,
		Logs: fmt.Sprintf("%3d%%|##########| %d/100 [00:04<00:05,  2.1it/s]\n", j.Progress, j.Progress),
	}
	body := p.json()
	if missing := j.Size - len(body); missing > 0 {
		p.Input["prompt"] = string(bytes.Repeat([]byte("a red kite over the sea "), missing/24+1)[:missing])
		body = p.json()
	}
	return body
}

func (p prediction) json() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings, a map of strings and nil always marshal
	}
	return body
}

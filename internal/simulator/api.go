package simulator

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bodies above these sizes are refused with 413.
const (
	maxReplicateBody = 1 << 20
	maxOpenAIBody    = 16 << 20
)

func (s *Simulator) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/predictions", s.guard(replicate, s.createPrediction))
	mux.Handle("POST /v1/models/{owner}/{name}/predictions", s.guard(replicate, s.createPrediction))
	mux.Handle("GET /v1/predictions/{id}", s.guard(replicate, s.query))
	mux.Handle("POST /v1/predictions/{id}/cancel", s.guard(replicate, s.cancel))
	mux.Handle("GET /v1/webhooks/default/secret", s.guard(replicate, s.tellSecret))
	mux.Handle("POST /v1/videos", s.guard(openai, s.createVideo))
	mux.Handle("GET /v1/videos/{id}", s.guard(openai, s.query))
	mux.Handle("GET /v1/videos/{id}/content", s.guard(openai, s.videoContent))
	mux.Handle("DELETE /v1/videos/{id}", s.guard(openai, s.deleteVideo))
	mux.HandleFunc("GET /files/{id}/out.mp4", s.outputFile)
	s.controlRoutes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { replicate.fail(w, notFound()) })
	return mux
}

// ServeHTTP answers both APIs, the output files and the control routes. A
// lost_response or a closed connection is a panic with http.ErrAbortHandler,
// which net/http turns into a cut connection.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// call is a request for one dialect.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	dialect dialect
}

func (d dialect) fail(w http.ResponseWriter, p *problem) {
	if d == openai {
		writeOpenAIProblem(w, p)
		return
	}
	writeReplicateProblem(w, p)
}

func (c call) fail(p *problem) { c.dialect.fail(c.w, p) }

func notFound() *problem {
	return &problem{status: http.StatusNotFound, code: "not_found", title: "Not found", detail: "The requested resource could not be found."}
}

func unauthorized() *problem {
	return &problem{
		status: http.StatusUnauthorized, code: "invalid_api_key", title: "Unauthenticated",
		detail: "A valid API key is needed in the Authorization header.",
	}
}

// guard checks the key before anything else is looked at.
func (s *Simulator) guard(d dialect, h func(call)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.authorized(r, d) {
			s.mu.Lock()
			s.stats.Unauthorized++
			s.mu.Unlock()
			d.fail(w, unauthorized())
			return
		}
		h(call{w, r, d})
	})
}

func (s *Simulator) authorized(r *http.Request, d dialect) bool {
	if s.cfg.APIKey == "" {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") && (d != replicate || scheme != "Token") {
		return false
	}
	got, want := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(s.cfg.APIKey))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func (s *Simulator) createPrediction(c call) {
	body, p := readBody(c, maxReplicateBody)
	var o *order
	if p == nil {
		model := ""
		if c.r.PathValue("owner") != "" {
			model = c.r.PathValue("owner") + "/" + c.r.PathValue("name")
		}
		o, p = parseReplicate(body, model, s.cfg.AllowPrivateWebhook)
	}
	s.create(c, o, p)
}

func (s *Simulator) createVideo(c call) {
	body, p := readBody(c, maxOpenAIBody)
	var o *order
	if p == nil {
		o, p = parseOpenAI(c.r.Header.Get("Content-Type"), body)
	}
	s.create(c, o, p)
}

// readBody reads the whole body, up to limit.
func readBody(c call, limit int64) ([]byte, *problem) {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return nil, &problem{status: http.StatusRequestEntityTooLarge, code: "request_too_large", detail: "The body is too large."}
	case err != nil:
		return nil, &problem{status: http.StatusBadRequest, code: "invalid_body", detail: "The body could not be read."}
	}
	return body, nil
}

// create runs a create in either dialect: faults before acceptance, acceptance,
// faults after it.
func (s *Simulator) create(c call, o *order, p *problem) {
	if p != nil {
		s.mu.Lock()
		s.stats.CreateInvalid++
		s.mu.Unlock()
		c.fail(p)
		return
	}
	o.idempotencyKey = c.r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	s.stats.CreateCalls++
	n := uint64(s.stats.CreateCalls)
	if !s.admitCreate(c, s.cfg.Now()) {
		s.mu.Unlock()
		c.throttled()
		return
	}
	fault := s.firstHit(&o.sim, mixName("create"), n, "create_429", "create_5xx", "create_hang")
	s.mu.Unlock()
	if fault != "" {
		s.refuse(c, &o.sim, fault, n)
		return
	}
	s.answerCreate(c, o)
}

func (s *Simulator) answerCreate(c call, o *order) {
	s.mu.Lock()
	j, err := s.take(o, s.base(c))
	if err != nil {
		s.mu.Unlock()
		s.unwritten(c, err)
		return
	}
	hit := func(key string) bool { return s.hit(&j.sim, key, j.seq, 0) }
	body := s.render(j)
	var early <-chan struct{}
	if s.hurry(j, j.created) && j.sending {
		j.early = make(chan struct{})
		early = j.early
	}
	lost, malformed := hit("lost_response"), hit("create_malformed")
	s.mu.Unlock()

	s.await(c, early, s.cfg.WebhookTimeout)
	if wait := preferWait(c); wait > 0 && c.dialect == replicate {
		s.await(c, j.done, wait)
		s.mu.Lock()
		body = s.render(j)
		s.mu.Unlock()
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	if malformed {
		body = body[:len(body)/2]
	}
	status := http.StatusCreated
	if c.dialect == openai {
		status = http.StatusOK
		s.pollHint(c, j)
	}
	writeBody(c.w, status, "application/json", body)
}

// unwritten refuses what the journal did not take; nothing was changed.
func (s *Simulator) unwritten(c call, err error) {
	s.cfg.Logger.Error("a request is refused", "error", err)
	c.fail(&problem{status: http.StatusServiceUnavailable, code: "server_error", detail: "The request could not be recorded."})
}

// await waits for ch, at most d, while the caller and the simulator live.
func (s *Simulator) await(c call, ch <-chan struct{}, d time.Duration) {
	if ch == nil {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
	case <-c.r.Context().Done():
	case <-s.stop:
	}
}

// preferWait reads "Prefer: wait" or "wait=n", n from 1 to 60 seconds.
func preferWait(c call) time.Duration {
	word, n, _ := strings.Cut(c.r.Header.Get("Prefer"), "=")
	if strings.TrimSpace(word) != "wait" {
		return 0
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(n))
	if err != nil || seconds < 1 || seconds > 60 {
		seconds = 60
	}
	return time.Duration(seconds) * time.Second
}

// base is the public address under which the caller reached us.
func (s *Simulator) base(c call) string {
	if s.cfg.PublicURL != "" {
		return strings.TrimSuffix(s.cfg.PublicURL, "/")
	}
	return "http://" + c.r.Host
}

// render is a job in its own dialect, now. Needs mu.
func (s *Simulator) render(j *job) []byte {
	if j.dialect == openai {
		return j.view().videoObject()
	}
	return j.view().prediction(s.cfg.Now())
}

func (s *Simulator) pollHint(c call, j *job) {
	s.mu.Lock()
	running := !j.phase.terminal()
	s.mu.Unlock()
	if running {
		c.w.Header().Set("openai-poll-after-ms", strconv.FormatInt(s.cfg.PollAfter.Milliseconds(), 10))
	}
}

// find looks a job up in the caller's dialect. Needs mu.
func (s *Simulator) find(c call) *job {
	j := s.jobs[c.r.PathValue("id")]
	if j == nil || j.dialect != c.dialect || j.deleted {
		return nil
	}
	return j
}

// queryFaults are those of a query, in the order in which they are drawn.
var queryFaults = []string{"query_401", "query_404", "query_429", "query_5xx", "query_hang", "query_malformed", "query_slow", "fail_query"}

func (s *Simulator) query(c call) {
	s.mu.Lock()
	s.stats.Queries++
	now := s.cfg.Now()
	if !s.admitQuery(c, now) {
		s.queried.add(c.r.PathValue("id"), now, answerOverQuota)
		s.mu.Unlock()
		c.throttled()
		return
	}
	j := s.find(c)
	if j == nil || now.Before(j.quirks.hiddenUntil) {
		s.queried.add(c.r.PathValue("id"), now, answerNotFound)
		s.mu.Unlock()
		c.fail(notFound())
		return
	}
	n := j.queries
	j.queries++
	fault := s.firstHit(&j.sim, j.seq, n, queryFaults...)
	s.queried.add(j.id, now, fault)
	body := s.render(j)
	slow := s.faultsFor(&j.sim, "slow_for").duration("slow_for")
	s.mu.Unlock()
	switch fault {
	case "query_slow":
		s.await(c, make(chan struct{}), slow)
		fallthrough
	case "":
		if c.dialect == openai {
			s.pollHint(c, j)
		}
		writeBody(c.w, http.StatusOK, "application/json", body)
	case "query_404":
		c.fail(notFound())
	case "query_malformed":
		writeBody(c.w, http.StatusOK, "application/json", body[:len(body)/2])
	default:
		s.refuse(c, &j.sim, fault, mix(j.seq, n))
	}
}

// cancel answers with the job as it is afterwards, finished ones included.
func (s *Simulator) cancel(c call) {
	s.mu.Lock()
	s.stats.Cancels++
	j := s.find(c)
	if j == nil {
		s.mu.Unlock()
		c.fail(notFound())
		return
	}
	if s.hit(&j.sim, "fail_cancel", j.seq, uint64(s.stats.Cancels)) {
		s.mu.Unlock()
		s.refuse(c, &j.sim, "fail_cancel", j.seq)
		return
	}
	now := s.now()
	s.catchUp(now)
	var err error
	if !j.phase.terminal() && !j.quirks.ignoreCancel {
		err = s.command(j, finishRecord{Status: canceled}, now)
	}
	body := s.render(j)
	s.mu.Unlock()
	if err != nil {
		s.unwritten(c, err)
		return
	}
	writeBody(c.w, http.StatusOK, "application/json", body)
}

func (s *Simulator) tellSecret(c call) {
	body, _ := json.Marshal(map[string]string{"key": s.cfg.WebhookSecret})
	writeBody(c.w, http.StatusOK, "application/json", body)
}

// firstHit draws faults in order and returns the first that strikes. Needs mu.
func (s *Simulator) firstHit(sim *directive, seq, n uint64, keys ...string) string {
	for _, key := range keys {
		if s.hit(sim, key, seq, n) {
			return key
		}
	}
	return ""
}

var serverErrors = []int{500, 502, 503, 504}

// refuse carries a fault out. n chooses among the forms a fault has.
func (s *Simulator) refuse(c call, sim *directive, fault string, n uint64) {
	pick := mix(s.cfg.Seed, mixName("refuse"), n)
	if fault == "fail_query" {
		switch pick % 6 {
		case 0:
			fault = "query_429"
		case 1:
			panic(http.ErrAbortHandler)
		}
	}
	s.mu.Lock()
	hang := s.faultsFor(sim, "hang_for").duration("hang_for")
	retryAfter := s.faultsFor(sim, "retry_after").duration("retry_after")
	s.mu.Unlock()
	switch fault {
	case "create_hang", "query_hang":
		s.await(c, make(chan struct{}), hang)
		panic(http.ErrAbortHandler)
	case "query_401":
		c.fail(unauthorized())
	case "create_429", "query_429":
		seconds := strconv.FormatInt(int64(max(1, retryAfter/time.Second)), 10)
		c.w.Header().Set("Retry-After", seconds)
		c.fail(&problem{
			status: http.StatusTooManyRequests, code: "rate_limit_exceeded", title: "Too many requests",
			detail: "Request was throttled. Try again in " + seconds + " s.",
		})
	default:
		c.fail(&problem{
			status: serverErrors[pick/6%uint64(len(serverErrors))], code: "server_error",
			detail: "Something went wrong on our side.",
		})
	}
}

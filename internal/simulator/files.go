package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// outputFile serves Replicate's output. Like the vendor's delivery host it asks
// for no key: the address is the secret.
func (s *Simulator) outputFile(w http.ResponseWriter, r *http.Request) {
	c := call{w, r, replicate}
	s.mu.Lock()
	s.stats.Downloads++
	j := s.find(c)
	ok := j != nil && j.phase == succeeded && j.hasOutput && !j.expired(s.cfg.Now())
	s.mu.Unlock()
	if !ok {
		c.fail(notFound())
		return
	}
	s.serveVideo(c, j)
}

// videoContent serves OpenAI's output, to holders of the key only.
func (s *Simulator) videoContent(c call) {
	s.mu.Lock()
	s.stats.Downloads++
	j := s.find(c)
	var p *problem
	switch {
	case j == nil:
		p = notFound()
	case !j.phase.terminal():
		p = &problem{status: http.StatusBadRequest, code: "video_not_ready", detail: "The video is not finished yet; query it until it is completed."}
	case j.phase != succeeded || !j.hasOutput:
		p = &problem{status: http.StatusNotFound, code: "not_found", detail: "There is no content for this video."}
	case j.expired(s.cfg.Now()):
		p = &problem{status: http.StatusNotFound, code: "not_found", detail: "The content is no longer available, its download period is over."}
	}
	s.mu.Unlock()
	if variant := c.r.URL.Query().Get("variant"); p == nil && variant != "" && variant != "video" {
		p = badParam("variant", "Only the variant 'video' is made here.")
	}
	if p != nil {
		c.fail(p)
		return
	}
	s.serveVideo(c, j)
}

func (s *Simulator) serveVideo(c call, j *job) {
	s.mu.Lock()
	broken := s.hit(&j.sim, "fail_download", j.seq, uint64(s.stats.Downloads))
	completed := j.completed
	s.mu.Unlock()
	if broken {
		s.refuse(c, &j.sim, "fail_download", j.seq)
		return
	}
	h := c.w.Header()
	h.Set("Content-Type", "video/mp4")
	h.Set("ETag", fmt.Sprintf(`"%016x-%d"`, j.video, videoFormat))
	http.ServeContent(c.w, c.r, "", completed.Truncate(time.Second), bytes.NewReader(Video(j.video)))
}

// deleteVideo removes a finished video; a running one is refused.
func (s *Simulator) deleteVideo(c call) {
	s.mu.Lock()
	s.stats.Deletes++
	j := s.find(c)
	running := j != nil && !j.phase.terminal()
	var err error
	if j != nil && !running {
		err = s.journal.append(record{Kind: recordDelete, At: s.now().UnixNano(), Job: j.id})
		j.deleted = err == nil
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.unwritten(c, err)
	case j == nil:
		c.fail(notFound())
	case running:
		c.fail(&problem{status: http.StatusBadRequest, code: "video_in_progress", detail: "Only a completed or failed video can be deleted."})
	default:
		body, _ := json.Marshal(struct {
			ID      string `json:"id"`
			Deleted bool   `json:"deleted"`
			Object  string `json:"object"`
		}{j.id, true, "video.deleted"})
		writeBody(c.w, http.StatusOK, "application/json", body)
	}
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

type taskDownloadCmd struct {
	target
	ID  string `arg:"" help:"Task id." placeholder:"tsk_…"`
	Out string `short:"o" type:"path" help:"File to write, - for standard output; the task's id with the right ending when empty." placeholder:"FILE"`
}

// asset is what the command needs of the API's asset.
type asset struct {
	ID          string `json:"id"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
}

// Run saves the published file and checks its bytes.
func (cmd taskDownloadCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	answer, err := c.task(ctx, cmd.ID)
	if err != nil {
		return err
	}
	if answer.Task.AssetID == nil {
		return noFileYet(answer.Task)
	}
	var found struct {
		Asset asset `json:"asset"`
	}
	if err := c.call(ctx, http.MethodGet, c.path("assets", *answer.Task.AssetID), nil, &found); err != nil {
		return err
	}
	if cmd.Out == "-" {
		return c.content(ctx, found.Asset, std.out)
	}
	path := either(cmd.Out, cmd.ID+ending(found.Asset.ContentType))
	if err := saveTo(path, func(w io.Writer) error { return c.content(ctx, found.Asset, w) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s (%d bytes, %s)\n", path, found.Asset.Size, found.Asset.ContentType)
	return err
}

// noFileYet says what to do about a task without a file.
func noFileYet(t wire.Task) error {
	switch t.Status {
	case domain.Status(domain.PhaseFailed), domain.Status(domain.PhaseCanceled):
		return fmt.Errorf("the task has ended as %s and has no file; `aivedio task retry %s` tries again", t.Status, t.ID)
	}
	return fmt.Errorf("the task is not ready (%s); `aivedio task watch %s` waits for it", t.Status, t.ID)
}

// ending is the file name's ending of a content type.
func ending(contentType string) string {
	kind, _, _ := mime.ParseMediaType(contentType) // an unknown type has no ending
	known := map[string]string{"video/mp4": ".mp4", "video/webm": ".webm", "video/quicktime": ".mov", "image/png": ".png", "image/jpeg": ".jpg"}
	return known[kind]
}

// content copies the bytes of an asset and holds them against its digest.
func (c *apiClient) content(ctx context.Context, a asset, w io.Writer) error {
	req, err := c.request(ctx, http.MethodGet, c.path("assets", a.ID, "content"), nil)
	if err != nil {
		return err
	}
	resp, err := c.open(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), resp.Body)
	if err != nil {
		return fmt.Errorf("the download broke off after %d of %d bytes: %w", n, a.Size, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.SHA256 {
		return fmt.Errorf("the download is damaged: its SHA-256 is %s, not %s; try again", got, a.SHA256)
	}
	return nil
}

// saveTo writes a file that appears under its name only when it is complete.
func saveTo(path string, write func(io.Writer) error) (err error) {
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part) // the first error says more
		}
	}()
	if err := write(f); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(part, path)
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/simulator"
	"github.com/aivedio/aivedio/internal/wire"
)

// ask reads a control route of the simulated vendor.
func (f *fleet) ask(ctx context.Context, path string, out any) error {
	return f.control(ctx, http.MethodGet, path, "", out)
}

// setFaults changes the vendor's faults; those that are not named stay.
func (f *fleet) setFaults(ctx context.Context, faults string) error {
	return f.control(ctx, http.MethodPost, "/_sim/faults", faults, &struct{}{})
}

func (f *fleet) control(ctx context.Context, method, path, body string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, f.vendor.URL()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.deployment.VendorKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// jobs are all jobs of the vendor.
func (f *fleet) jobs(ctx context.Context) ([]simulator.JobInfo, error) {
	var out struct{ Jobs []simulator.JobInfo }
	err := f.ask(ctx, "/_sim/jobs?limit=0", &out)
	return out.Jobs, err
}

// desk is a person with the operator's commands.
type desk struct {
	f      *fleet
	db     *pgxpool.Pool
	tokens *app.CallbackTokens
	// created and notCreated count the cases that were decided so.
	created, notCreated int
}

func newDesk(t *testing.T, f *fleet, db *pgxpool.Pool) *desk {
	t.Helper()
	tokens, err := app.NewCallbackTokens(f.deployment.CallbackKey)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{f: f, db: db, tokens: tokens}
}

// openCase is a line of `aivedio case list --json`.
type openCase struct {
	ID        int64
	Kind      string
	TaskID    string `json:"task_id"`
	AttemptID string `json:"attempt_id"`
}

func (d *desk) cases(kind string) ([]openCase, error) {
	args := []string{"case", "list", "--json", "--limit", "500"}
	if kind != "" {
		args = append(args, "--kind", kind)
	}
	out, code := d.f.command(args...)
	if code != 0 {
		return nil, nil // an API that is just being restarted: the next look finds it
	}
	var list struct{ Cases []openCase }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("case list printed %q: %w", out, err)
	}
	return list.Cases, nil
}

// decide looks every open case of an unknown submit up at the vendor and resolves
// it.
func (d *desk) decide(ctx context.Context) error {
	cases, err := d.cases(string(domain.CaseSubmitUnknown))
	if err != nil || len(cases) == 0 {
		return err
	}
	jobs, err := d.f.jobs(ctx)
	if err != nil {
		return err
	}
	for _, c := range cases {
		job, err := d.lookUp(ctx, c, jobs)
		if err != nil {
			return err
		}
		as := []string{"case", "resolve", fmt.Sprint(c.ID), "--reason", "looked up at the vendor"}
		counter := &d.notCreated
		if job != "" {
			as, counter = append(as, "--as", "created_with_id", "--provider-task-id", job), &d.created
		} else {
			as = append(as, "--as", "not_created")
		}
		if _, code := d.f.command(as...); code == 0 {
			*counter++ // else a callback was faster, or the API was away: the next look shows
		}
	}
	return nil
}

// lookUp finds the job of an attempt by the callback address that only this
// attempt has, or, where the vendor is told no address, by its prompt.
func (d *desk) lookUp(ctx context.Context, c openCase, jobs []simulator.JobInfo) (job string, err error) {
	id, err := wire.ParseID(wire.PrefixAttempt, c.AttemptID)
	if err != nil {
		return "", err
	}
	var prompt string
	err = d.db.QueryRow(ctx, "SELECT i.prompt FROM task_attempts a JOIN task_inputs i USING (task_id) WHERE a.id = $1", [16]byte(id)).Scan(&prompt)
	if err != nil {
		return "", err
	}
	address := "/callbacks/replicate/" + d.tokens.Make(domain.AttemptID{ID: id})
	for _, j := range jobs {
		if strings.HasSuffix(j.Webhook, address) || j.Key == "prompt:"+prompt {
			return j.ID, nil
		}
	}
	return "", nil
}

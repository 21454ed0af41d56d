package main

import (
	"fmt"
	"strconv"

	"github.com/aivedio/aivedio/domain"
)

// printTask prints a snapshot for a person or a program.
func printTask(std streams, answer taskAnswer, asJSON bool) error {
	if asJSON {
		return std.json(answer)
	}
	t := answer.Task
	rows := [][]string{
		{"task", t.ID},
		{"status", string(t.Status)},
		{"stage", string(t.Stage)},
		{"progress", percent(t.Progress)},
		{"cancel", string(t.Cancel)},
		{"vendor", t.Attempt.Provider + " " + t.Attempt.Model},
		{"attempt", fmt.Sprintf("%d, %s", t.Attempt.No, t.Attempt.Status)},
		{"version", strconv.FormatInt(t.TaskVersion, 10)},
		{"created", t.CreatedAt},
		{"updated", t.UpdatedAt},
	}
	if t.Error != nil {
		rows = append(rows, []string{"error", fmt.Sprintf("%s (retryable: %t, %s)", t.Error.Code, t.Error.Retryable, t.Error.TraceID)})
	}
	if t.AssetID != nil {
		rows = append(rows, []string{"asset", *t.AssetID}, []string{"file", "aivedio task download " + t.ID})
	}
	if t.UnknownSince != nil {
		rows = append(rows, []string{"unknown since", *t.UnknownSince})
	}
	if err := std.table(rows); err != nil || t.UnknownSince == nil {
		return err
	}
	_, err := fmt.Fprintf(std.out, "The vendor does not say what became of the job. Nothing fails because of that, and it is asked again;\n`aivedio task timeline %s` shows its last answers.\n", t.ID)
	return err
}

func percent(p *int) string {
	if p == nil {
		return "–"
	}
	return strconv.Itoa(*p) + " %"
}

// taskExit is the exit code that a task's end gives.
func taskExit(status domain.Status) error {
	switch status {
	case domain.Status(domain.PhaseReady):
		return nil
	case domain.Status(domain.PhaseFailed):
		return &exitError{code: exitFailed}
	case domain.Status(domain.PhaseCanceled):
		return &exitError{code: exitCanceled}
	default:
		return &exitError{code: exitRunning}
	}
}

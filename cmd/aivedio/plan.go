package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/internal/capacity"
)

// planCmd has the load of specification 12.11 as its defaults.
type planCmd struct {
	ArrivalRate       float64       `default:"60" help:"New tasks per second, the mean."`
	MeanDuration      time.Duration `default:"120s" help:"How long a vendor works on a task, the mean."`
	EventsPerTask     float64       `default:"6" help:"Stored events of a task, the mean."`
	PeakFactor        float64       `default:"3" help:"The busiest time as a multiple of the mean."`
	PollInterval      time.Duration `default:"15s" help:"Time between two queries for a task, the mean."`
	VendorQuota       float64       `default:"200" help:"Queries per second that the vendors allow."`
	Connections       int           `default:"100000" help:"Streams open at the same time."`
	HeartbeatInterval time.Duration `default:"25s" help:"Time between two heartbeats of a stream."`
	EventBytes        float64       `default:"500" help:"Size of an event on the wire, the mean."`
	FanOut            float64       `default:"1.3" help:"Streams that an event reaches, the mean."`
	Nodes             int           `default:"8" help:"Machines with a gateway."`
	KiBPerConnection  float64       `name:"kib-per-connection" default:"30" help:"Memory to plan for a stream, in KiB."`
	Costs             string        `type:"path" placeholder:"FILE" help:"Unit costs measured on another machine (JSON); the built-in ones otherwise."`
	JSON              bool          `help:"Print JSON."`
}

func (cmd planCmd) load() capacity.Load {
	return capacity.Load{
		ArrivalRate: cmd.ArrivalRate, MeanDuration: cmd.MeanDuration.Seconds(),
		EventsPerTask: cmd.EventsPerTask, PeakFactor: cmd.PeakFactor,
		PollInterval: cmd.PollInterval.Seconds(), VendorQuota: cmd.VendorQuota,
		Connections: cmd.Connections, HeartbeatInterval: cmd.HeartbeatInterval.Seconds(),
		EventBytes: cmd.EventBytes, FanOut: cmd.FanOut,
		Nodes: cmd.Nodes, KiBPerConnection: cmd.KiBPerConnection,
	}
}

// costs reads the file, or takes what is known of the machine this was built on.
func (cmd planCmd) costs() (capacity.Costs, error) {
	if cmd.Costs == "" {
		return capacity.DefaultCosts()
	}
	data, err := os.ReadFile(cmd.Costs)
	if err != nil {
		return capacity.Costs{}, fmt.Errorf("unit costs: %w", err)
	}
	costs, err := capacity.ParseCosts(data)
	if err != nil {
		return capacity.Costs{}, fmt.Errorf("%s: %w", cmd.Costs, err)
	}
	return costs, nil
}

// Run prints what a load takes. A warning is an answer and no failure.
func (cmd planCmd) Run(std streams) error {
	costs, err := cmd.costs()
	if err != nil {
		return err
	}
	plan, err := capacity.Make(cmd.load(), costs)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return std.json(plan)
	}
	return printPlan(std, plan)
}

func printPlan(std streams, p capacity.Plan) error {
	figures := [][]string{{"FIGURE", "VALUE", "FORMULA"}}
	for _, f := range p.Figures {
		figures = append(figures, []string{f.Label, f.Text, f.Formula})
	}
	roles := [][]string{{"ROLE", "PROCESSES", "CORES", "FORMULA"}}
	for _, r := range p.Processes {
		roles = append(roles, []string{r.Role, strconv.Itoa(r.Processes), cores(r.Cores), r.Formula})
	}
	machines := [][]string{{"MACHINES", "CORES", "ROLES ON EACH"}}
	machines = append(machines, machineRows(p.Machines)...)
	costs := [][]string{{"UNIT COST", "VALUE", "BASIS", "SOURCE"}}
	for _, c := range p.Costs.List() {
		costs = append(costs, []string{c.Name, strconv.FormatFloat(c.Value, 'f', -1, 64), string(c.Basis), c.Source})
	}
	for _, rows := range [][][]string{figures, roles, machines, costs} {
		if err := std.table(rows); err != nil {
			return err
		}
		fmt.Fprintln(std.out)
	}
	_, err := fmt.Fprintf(std.out, "Machines are of the kind of the unit costs: %s. PostgreSQL, RocketMQ and Redis have machines of their own.\n", p.Costs.Machine)
	for _, w := range p.Warnings {
		_, err = fmt.Fprintf(std.out, "warning: %s: %s\n", w.Code, w.Text)
	}
	return err
}

// machineRows joins neighbours that run the same roles.
func machineRows(machines []capacity.Placement) [][]string {
	var rows [][]string
	for from := 0; from < len(machines); {
		to := from + 1
		for to < len(machines) && slices.Equal(machines[to].Roles, machines[from].Roles) {
			to++
		}
		name := strconv.Itoa(machines[from].Machine)
		if to > from+1 {
			name += "–" + strconv.Itoa(machines[to-1].Machine)
		}
		rows = append(rows, []string{name, cores(machines[from].Cores), strings.Join(machines[from].Roles, " ")})
		from = to
	}
	return rows
}

// cores prints CPU; a role without a unit cost has none to print.
func cores(n float64) string {
	if n == 0 {
		return "?"
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

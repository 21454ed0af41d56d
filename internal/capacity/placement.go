package capacity

import (
	"cmp"
	"fmt"
	"slices"
)

// Placement is what one machine runs.
type Placement struct {
	// Machine is its number, from 1.
	Machine int `json:"machine"`
	// Roles has the processes; a role that is there twice runs twice.
	Roles []string `json:"roles"`
	// Cores is their CPU at the peak.
	Cores float64 `json:"cores"`
}

// maxProcesses bounds a placement: above it one PostgreSQL is far behind, and
// the plan would only hide that.
const maxProcesses = 20_000

// place spreads the processes: gateways over the nodes first, then each role on
// different machines, always on the one with the least to do, and on a further
// machine where no CPU is left.
func place(nodes int, kind Machine, counts []RoleCount) ([]Placement, error) {
	total := 0
	for _, c := range counts {
		total += c.Processes
	}
	if total > maxProcesses {
		return nil, fmt.Errorf("the load takes %s processes on machines like %s: check the inputs for a slip, or give unit costs of a larger machine with --costs",
			number(float64(total)), kind)
	}
	machines := make([]Placement, nodes)
	for i := range machines {
		machines[i].Machine = i + 1
	}
	usable := float64(kind.CPUs) * room
	for _, c := range slices.SortedStableFunc(slices.Values(counts), heaviest) {
		each := c.Cores / float64(c.Processes)
		machines = spread(machines, c, each, usable)
	}
	for i := range machines {
		slices.Sort(machines[i].Roles)
	}
	return machines, nil
}

// heaviest orders the gateway first, which has its nodes, then by CPU.
func heaviest(a, b RoleCount) int {
	if first := cmp.Compare(gatewayFirst(a), gatewayFirst(b)); first != 0 {
		return first
	}
	return cmp.Compare(b.Cores/float64(b.Processes), a.Cores/float64(a.Processes))
}

func gatewayFirst(c RoleCount) int {
	if c.Role == "gateway" {
		return 0
	}
	return 1
}

// spread gives the processes of one role out in rounds: a round takes each
// machine once, so no machine has two while another has none and room for one.
func spread(machines []Placement, c RoleCount, each, usable float64) []Placement {
	left := c.Processes
	for left > 0 {
		before := left
		for _, i := range idlest(machines, each == 0) {
			if left > 0 && machines[i].Cores+each <= usable*(1+1e-9) {
				machines[i].add(c.Role, each)
				left--
			}
		}
		if left == before {
			break // no machine has CPU left for one more
		}
	}
	for range left {
		machines = append(machines, Placement{Machine: len(machines) + 1})
		machines[len(machines)-1].add(c.Role, each)
	}
	return machines
}

func (p *Placement) add(role string, cores float64) {
	p.Roles = append(p.Roles, role)
	p.Cores += cores
}

// idlest has the indexes of the machines, the one with the least to do first:
// the least CPU, or the fewest roles for a role whose CPU nobody knows.
func idlest(machines []Placement, unknown bool) []int {
	order := make([]int, len(machines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		cpu := cmp.Compare(machines[a].Cores, machines[b].Cores)
		roles := cmp.Compare(len(machines[a].Roles), len(machines[b].Roles))
		if unknown {
			return cmp.Or(roles, cpu)
		}
		return cmp.Or(cpu, roles)
	})
	return order
}

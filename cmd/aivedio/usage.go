package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// usageFault says what is wrong with a command line and where to read on. Kong
// names five of the commands that could follow; all of them are named here.
func usageFault(err error) error {
	var fault *kong.ParseError
	if !errors.As(err, &fault) || fault.Context == nil {
		return err
	}
	node := fault.Context.Model.Node
	path := node.Name
	if selected := fault.Context.Selected(); selected != nil {
		node, path = selected, node.Name+" "+selected.Path()
	}
	if names := commandsOf(node); len(names) > 0 && strings.HasPrefix(err.Error(), "expected ") {
		err = fmt.Errorf("which command? %s has %s", path, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w; see `%s --help`", err, path)
}

func commandsOf(node *kong.Node) []string {
	var names []string
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

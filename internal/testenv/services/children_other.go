//go:build unix && !linux

package services

import (
	"errors"
	"fmt"
)

// childrenOf needs /proc.
func childrenOf(int) ([]int, error) {
	return nil, fmt.Errorf("list the children of a process: %w", errors.ErrUnsupported)
}

package launch

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// module is the import path of the commands' module.
const module = "github.com/aivedio/aivedio"

// Build compiles the command of the name below cmd/ into dir, without the race
// detector, and returns the path of the executable. The working folder must be
// inside the module.
func Build(ctx context.Context, name, dir string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, module+"/cmd/"+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

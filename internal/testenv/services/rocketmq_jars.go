package services

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// rocketVersion is the newest one whose name server is on Maven Central.
const rocketVersion = "5.1.4"

const rocketPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>aivedio</groupId><artifactId>rocketmq</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-namesrv</artifactId><version>` + rocketVersion + `</version></dependency>
    <dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-broker</artifactId><version>` + rocketVersion + `</version></dependency>
  </dependencies>
</project>
`

// rocketJars returns the folder with RocketMQ's jars: the one named by
// AIVEDIO_ROCKETMQ_LIB, otherwise a cached copy, fetched with Maven on first
// use.
func rocketJars(ctx context.Context) (string, error) {
	if dir := os.Getenv("AIVEDIO_ROCKETMQ_LIB"); dir != "" {
		return dir, nil
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rocketmq-"+rocketVersion)
	err = install(dir, func(tmp string) error { return fetchRocketJars(ctx, tmp) })
	if err != nil {
		return "", fmt.Errorf("get RocketMQ %s: %w", rocketVersion, err)
	}
	return filepath.Join(dir, "lib"), nil
}

func fetchRocketJars(ctx context.Context, dir string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("maven is %w (apt-get install maven, or brew install maven): %w", ErrNotInstalled, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(rocketPOM), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "dependency:copy-dependencies",
		"-DoutputDirectory=lib", "-DincludeScope=runtime")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if len(out) > 4000 {
			out = out[len(out)-4000:]
		}
		return fmt.Errorf("mvn dependency:copy-dependencies: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// findJava returns the java program of JAVA_HOME, else of PATH.
func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java"), nil
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("java is %w (apt-get install default-jdk-headless, or brew install openjdk): %w", ErrNotInstalled, err)
	}
	return java, nil
}

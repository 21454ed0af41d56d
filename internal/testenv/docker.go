package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aivedio/aivedio/internal/testenv/services"
	"github.com/jackc/pgx/v5"
	"github.com/ory/dockertest/v3"
	dc "github.com/ory/dockertest/v3/docker"
)

// docker returns a pool when an engine answers, else nil. NewPool succeeds
// without an engine, so only the ping decides.
var docker = sync.OnceValue(func() *dockertest.Pool {
	if os.Getenv("AIVEDIO_TEST_DOCKER") == "off" {
		return nil
	}
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if pool.Client.PingWithContext(ctx) != nil {
		return nil
	}
	pool.MaxWait = 2 * time.Minute
	return pool
})

// containerLife is when the engine ends a container whose test process died.
const containerLife = 3600 // seconds

// container is one service in Docker. It has the methods of control.
type container struct {
	pool  *dockertest.Pool
	res   *dockertest.Resource
	ready func() error
}

// runContainer starts a container and waits until ready succeeds.
func runContainer(pool *dockertest.Pool, opts *dockertest.RunOptions, ready func(*dockertest.Resource) error, host ...func(*dc.HostConfig)) (*container, error) {
	res, err := pool.RunWithOptions(opts, host...)
	if err != nil {
		return nil, fmt.Errorf("run %s:%s in Docker: %w", opts.Repository, opts.Tag, err)
	}
	c := &container{pool: pool, res: res, ready: func() error { return ready(res) }}
	if err := c.await(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *container) await() error {
	if err := c.res.Expire(containerLife); err != nil {
		return err
	}
	return c.pool.Retry(c.ready)
}

// Start starts a halted container again and waits until it is ready.
func (c *container) Start(ctx context.Context) error {
	if err := c.pool.Client.StartContainerWithContext(c.res.Container.ID, nil, ctx); err != nil {
		var running *dc.ContainerAlreadyRunning
		if errors.As(err, &running) {
			return nil
		}
		return err
	}
	return c.await()
}

// Halt ends the container's processes with SIGKILL and keeps the container.
func (c *container) Halt() error {
	err := c.pool.Client.KillContainer(dc.KillContainerOptions{ID: c.res.Container.ID})
	var stopped *dc.ContainerNotRunning
	if err != nil && !errors.As(err, &stopped) {
		return err
	}
	_, err = c.pool.Client.WaitContainer(c.res.Container.ID)
	return err
}

// Pause freezes the container.
func (c *container) Pause() error { return c.pool.Client.PauseContainer(c.res.Container.ID) }

// Resume ends Pause.
func (c *container) Resume() error { return c.pool.Client.UnpauseContainer(c.res.Container.ID) }

// Stop removes the container.
func (c *container) Stop() error { return c.pool.Purge(c.res) }

func dockerPostgres(pool *dockertest.Pool) (string, func() error, error) {
	cmd := []string{"postgres", "-c", "fsync=off", "-c", "full_page_writes=off"}
	for k, v := range testSettings() {
		cmd = append(cmd, "-c", k+"="+v)
	}
	var admin string
	c, err := runContainer(pool, &dockertest.RunOptions{
		Repository: "postgres", Tag: "17", Cmd: cmd,
		Env: []string{"POSTGRES_USER=aivedio", "POSTGRES_PASSWORD=aivedio", "POSTGRES_DB=postgres"},
	}, func(res *dockertest.Resource) error {
		admin = "postgres://aivedio:aivedio@" + res.GetHostPort("5432/tcp") + "/postgres?sslmode=disable"
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return "", nil, err
	}
	return admin, c.Stop, nil
}

func dockerRedis(pool *dockertest.Pool, settings map[string]string) (string, control, error) {
	port, err := services.FreePort()
	if err != nil {
		return "", nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	cmd := []string{"redis-server", "--save", "", "--appendonly", "no"}
	for name, value := range settings {
		cmd = append(append(cmd, "--"+name), strings.Fields(value)...)
	}
	c, err := runContainer(pool, &dockertest.RunOptions{
		Repository: "redis", Tag: "7", Cmd: cmd,
		ExposedPorts: []string{"6379/tcp"},
		PortBindings: publish(map[int]int{6379: port}),
	}, func(*dockertest.Resource) error { return answersPing(addr) })
	if err != nil {
		return "", nil, err
	}
	return addr, c, nil
}

// answersPing says whether a Redis behind addr answers: Docker's proxy
// accepts connections before the server does.
func answersPing(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 1)
	_, err = conn.Read(answer)
	return err
}

// publish maps container ports to ports of 127.0.0.1.
func publish(ports map[int]int) map[dc.Port][]dc.PortBinding {
	bindings := map[dc.Port][]dc.PortBinding{}
	for inside, outside := range ports {
		bindings[dc.Port(fmt.Sprintf("%d/tcp", inside))] = []dc.PortBinding{{HostIP: "127.0.0.1", HostPort: strconv.Itoa(outside)}}
	}
	return bindings
}

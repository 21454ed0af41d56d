package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// plain tells an error of a connection to PostgreSQL in one sentence; the driver
// repeats itself for every address and mode that it tries.
func plain(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) || failed.Config == nil {
		return err
	}
	address := net.JoinHostPort(failed.Config.Host, strconv.Itoa(int(failed.Config.Port)))
	return fmt.Errorf("no connection to PostgreSQL at %s: %s", address, cause(err))
}

// cause is the innermost fact of a network error.
func cause(err error) string {
	var refused *pgconn.PgError
	var name *net.DNSError
	var number syscall.Errno
	var system *os.SyscallError
	var request *url.Error
	switch {
	case errors.As(err, &refused):
		return refused.Message
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s is not known", name.Name)
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &system):
		return system.Err.Error()
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}

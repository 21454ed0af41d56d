// Package services starts the real services that aivedio needs, PostgreSQL,
// Redis and RocketMQ, as local processes without Docker: for `aivedio dev`,
// for `make services` and, below package testenv, for the tests.
//
// Every service listens on 127.0.0.1, keeps its files in one folder, writes
// its output to a log file there, and dies with the process that started it,
// also when that process is killed with SIGKILL: a guard shell holds the read
// end of a pipe and stops the service when the pipe closes.
//
// The package does not import testing, so commands can use it.
package services

// Package launch builds this module's commands and runs them as processes of the
// operating system, which can be killed and started again. Benchmarks and
// end-to-end tests share it.
package launch

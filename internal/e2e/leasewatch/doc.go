// Package leasewatch writes down every lease of a query, and holds what the vendor
// saw against it: whether a job was asked for twice under one lease, or by somebody
// who held none, and how late. Benchmarks and end-to-end tests share it.
package leasewatch

// Package httpapi is the service's HTTP surface: REST for clients, callback
// addresses for vendors, the operators' desk, health and metrics. It decides
// nothing: it reads a request, calls one use case and writes its answer, and
// every error leaves through one table as an RFC 9457 problem document.
package httpapi

// Package replicate speaks the predictions API of replicate.com.
//
// A prediction reports by a webhook per request and answers queries with the
// same object, so one decoder serves both. What is known of the API, and what is
// not, stands in docs/providers/replicate.md.
package replicate

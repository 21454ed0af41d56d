// Package openaivideo speaks the videos API that OpenAI published and that many
// gateways still offer, with status words of their own.
//
// Its webhooks are thin: they name a job and a verdict and carry neither. The
// content is downloaded from the API with the credential. What is known of the
// API, and what is not, stands in docs/providers/openaivideo.md.
package openaivideo

// Package stdwebhook verifies deliveries signed by the Standard Webhooks scheme
// (version 1.0.0): OpenAI, Replicate, Gemini and every sender hosted by Svix.
//
// The signature covers "id.timestamp.body". The body is the received bytes and
// the timestamp the received text: a verifier that formats the number anew
// refuses genuine deliveries. Reference libraries differ in what they forgive;
// this one skips entries of an unknown version and entries without a comma, and
// forgives nothing else.
package stdwebhook

// Package simulator is an AI video vendor in a box: an HTTP server that speaks
// the wire shape of Replicate's predictions API and of OpenAI's videos API,
// moves the jobs it accepted through their life, sends signed webhooks about
// them, answers queries, serves a small real video as the result, and does all
// of that as badly as it is told to.
//
// It is written from the vendors' documentation and shares no code with the
// adapters that talk to it, so a mistake in one is seen by the other.
//
// # Use
//
//	sim := simulator.New(simulator.Config{APIKey: "k", AllowPrivateWebhook: true})
//	go sim.Run(ctx)                   // moves jobs and sends webhooks
//	http.ListenAndServe(addr, sim)    // answers the API
//
// docs/simulator.md tells what each fault looks like from outside. With a
// Config.Journal jobs outlive the process: a start lives through the journal
// again, and as draws, ids and bodies depend on seed, order and planned times
// only, everything comes out as it was.
//
// # Routes
//
//	POST   /v1/predictions                        create (version or model in the body)
//	POST   /v1/models/{owner}/{name}/predictions  create
//	GET    /v1/predictions/{id}                   query
//	POST   /v1/predictions/{id}/cancel            cancel
//	GET    /v1/webhooks/default/secret            the signing secret
//	POST   /v1/videos                             create (JSON or multipart)
//	GET    /v1/videos/{id}                        query
//	GET    /v1/videos/{id}/content                the video itself
//	DELETE /v1/videos/{id}                        delete a finished video
//	GET    /files/{id}/out.mp4                    Replicate's output file (ranges, ETag)
//	GET    /_sim/stats  /_sim/jobs  /_sim/faults  what happened so far
//	POST   /_sim/faults                           change faults while it runs
//	GET    /_sim/quota    POST /_sim/quota        the accounts' quota and what they made of it
//	GET    /_sim/queries                          when which job was asked for
//	POST   /_sim/jobs/{id}/finish                 end a job now
//
// The control routes ask for the same key as the API does: webhook URLs carry
// the client's callback tokens and are shown there.
//
// # Faults
//
// Each fault is a rate from 0 to 1 in [Faults]. Draws depend on Config.Seed,
// the number of the job (in order of acceptance; for create faults the number of
// the call) and the number of the message or query within it, never on time or
// scheduling, so a run can be repeated.
//
// One message (webhook):
//
//	drop_webhook              never sent, not even by a retry
//	delay_webhook             sent later, by 0.5 to 1.5 × delay_for
//	duplicate_webhook         sent twice under the same webhook-id
//	duplicate_webhook_new_id  sent again under another webhook-id
//	reorder_webhook           an unfinished status is held back until a newer one
//	                          went out (so a terminal can precede its start); a
//	                          terminal is followed by an older status. OpenAI has
//	                          one message per video, there it is a delay
//	malformed_webhook         the body is cut in half (and signed as it is)
//	bad_signature             signed with a key nobody has
//	stale_webhook             signed with a timestamp of ten minutes ago
//	foreign_event             an event of another product of the vendor goes to the
//	                          same endpoint first (OpenAI's shape only)
//
// One job, drawn when it is accepted:
//
//	webhooks_off       no webhook at all
//	early_callback     the first webhook is delivered before the create answers
//	instant_result     the create answers with a finished job
//	contradict         the opposite terminal first, the true one contradict_after later
//	empty_output       success without an output
//	fail               the vendor's own failure; fail_kind says which
//	abort              Replicate's status "aborted"; a failure in OpenAI's shape
//	unknown_status     a status word nobody documented while it runs
//	synonym_status     OpenAI-compatible gateways' words (succeeded, SUCCESS, …)
//	fine_progress      a logs event at every percent, not throttled
//	many_bars          the log holds two progress bars, so progress falls back
//	not_found          queries answer 404 for not_found_for after the create
//
// One HTTP call:
//
//	create_429  create_5xx  create_hang         nothing was accepted; a 429 says
//	                                            retry_after, a hang lasts hang_for
//	lost_response                               accepted, then the connection closes
//	create_malformed                            accepted, the body is cut in half
//	fail_query                                  any of 429, 5xx, closed connection
//	query_401  query_404  query_429  query_5xx  query_hang  query_malformed
//	query_slow                                  what was true when it was asked,
//	                                            told slow_for later
//	fail_cancel  ignore_cancel                  5xx; a 200 that cancels nothing
//	fail_download                               5xx on the output
//
// A job can carry its own faults, which win over the global ones: as an object,
// {"input":{"prompt":"…","sim":{"drop":true,"fail":"moderation","run":"2s"}}}
// (for OpenAI's shape a field "sim" beside the prompt), or in the prompt itself,
// "a red kite [sim:fail=moderation] [sim:duplicate=0.5]". Short words are drop,
// delay, duplicate, duplicate_new_id, reorder, malformed, empty, off, early,
// instant and lost; besides faults there are queue, run and ttl (durations), key
// (the name under which creates are counted) and output (string, array or
// object). An unknown word makes the create invalid, so a typing error cannot
// pass for a test.
package simulator

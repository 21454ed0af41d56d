// Package rocketbus is the bus on RocketMQ.
//
// Messages: one topic, KEYS is the task's TypeID, TAG the type of the event, the
// body a bus message as JSON. A project's events go to one queue, found by hash
// over the list of queues as it was when the bus was opened, in batches that are
// stored or refused whole.
//
// The client library has habits that this package works around; each place says
// which one. What cannot be worked around: its goroutines outlive Shutdown by up
// to minutes (statistics by up to a day) and do nothing, connections to name
// servers by a minute; and after a broker's restart a consumer takes up to half a
// minute, its heartbeat's interval, to go on. Access control lists are not
// supported.
package rocketbus

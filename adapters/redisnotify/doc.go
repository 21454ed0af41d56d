// Package redisnotify is the notifier on Redis Pub/Sub and the quota that all
// processes share through Redis. Both carry what may be lost: a hint that does
// not arrive is found by a read, and a quota without Redis falls back to a
// conservative bucket of its own process.
package redisnotify

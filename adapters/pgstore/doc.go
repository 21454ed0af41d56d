// Package pgstore is the store on PostgreSQL: every port of ports.Store over
// sqlc-generated queries and pgx. One transaction changes a task and writes its
// event, outbox row and ledger entries; no other code of the product writes them.
//
// How the transaction is built is told in transition.go and append.go, how
// deliveries are queued and taken in inbox.go and process.go.
package pgstore

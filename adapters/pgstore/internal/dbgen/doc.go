// Package dbgen is what sqlc makes of queries/ and schema/schema.sql. Only
// package pgstore's convert.go turns its types into the domain's.
package dbgen

// Package blobstore keeps media files in a directory or an object store, and
// fetches vendors' outputs without being led to an inside address.
package blobstore

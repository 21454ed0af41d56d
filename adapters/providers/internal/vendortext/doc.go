// Package vendortext makes a vendor's own sentence fit to be kept for operators:
// short, one line, and without addresses and credentials.
package vendortext

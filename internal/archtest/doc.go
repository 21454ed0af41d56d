// Package archtest holds the rules of the source tree as functions over a
// parsed file tree, and the tests that run them on this repository.
//
// Files are read and parsed in the test's own process. A `go list` subprocess
// would be answered from the test cache when only other packages changed, and
// sees one set of build tags at a time.
package archtest

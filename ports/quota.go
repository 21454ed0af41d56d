package ports

import (
	"context"
	"time"
)

// Quota hands out permits from token buckets that all processes share.
type Quota interface {
	// Take takes one permit from every bucket, or from none. It returns how long
	// to wait when one is empty, 0 when the permits are taken. Where the shared
	// store does not answer, a conservative local bucket decides, and the answer
	// is the same; an error is only the end of the context.
	Take(ctx context.Context, buckets []Bucket) (time.Duration, error)
}

// Bucket is one limit: platform, tenant, provider account or model.
type Bucket struct {
	// Key names the bucket, for instance "account:replicate:main".
	Key string
	// Rate is permits per second; Burst how many may be saved up. A bucket whose
	// Rate or Burst is not positive is shut: it gives nothing.
	Rate  float64
	Burst int
}

package simulator

import "hash/fnv"

// mix folds its parts into one well spread number (splitmix64 finaliser).
// Every draw is a pure function of such a number: a shared generator would
// make the outcome depend on the order in which goroutines ask.
func mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h = (h ^ p) + 0x9e3779b97f4a7c15
		h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9
		h = (h ^ (h >> 27)) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// mixName turns a name into a part for mix.
func mixName(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // a hash never fails to write
	return h.Sum64()
}

// unit maps a number from mix to [0,1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// token spells n characters out of the given parts, in lower-case base 32.
func token(n int, parts ...uint64) string {
	out := make([]byte, n)
	var word uint64
	for i := range out {
		if i%12 == 0 {
			word = mix(append(parts, uint64(i))...)
		}
		out[i] = idAlphabet[word&31]
		word >>= 5
	}
	return string(out)
}

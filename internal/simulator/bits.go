package simulator

import "math/bits"

// bitWriter builds an H.264 raw byte sequence payload.
type bitWriter struct {
	buf  []byte
	free uint // unused low bits of the last byte
}

func (w *bitWriter) bit(b uint) {
	if w.free == 0 {
		w.buf = append(w.buf, 0)
		w.free = 8
	}
	w.free--
	w.buf[len(w.buf)-1] |= byte(b&1) << w.free
}

func (w *bitWriter) bits(v uint, n int) {
	for i := n - 1; i >= 0; i-- {
		w.bit(v >> i)
	}
}

// ue writes an unsigned Exp-Golomb code.
func (w *bitWriter) ue(v uint) {
	n := bits.Len(v + 1)
	w.bits(0, n-1)
	w.bits(v+1, n)
}

// align fills the byte with zeros; bytes then appends whole ones.
func (w *bitWriter) align()         { w.free = 0 }
func (w *bitWriter) bytes(b []byte) { w.buf = append(w.buf, b...) }

// finish adds the stop bit and returns the NAL unit with the given header
// byte, in which no three bytes look like a start code.
func (w *bitWriter) finish(header byte) []byte {
	w.bit(1)
	w.align()
	out := make([]byte, 1, len(w.buf)+len(w.buf)/64+2)
	out[0] = header
	zeros := 0
	for _, b := range w.buf {
		if zeros >= 2 && b <= 3 {
			out = append(out, 3)
			zeros = 0
		}
		if b == 0 {
			zeros++
		} else {
			zeros = 0
		}
		out = append(out, b)
	}
	return out
}

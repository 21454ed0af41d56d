package simulator

import "encoding/binary"

// The file is an ordinary progressive MP4: ftyp, moov, mdat in that order, one
// track, one chunk, every sample a key frame (so no stss). All times are zero
// or counted in frames: nothing but the pictures changes from file to file.

func be16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func be32(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// mp4Box frames its parts with a size and a four-letter name.
func mp4Box(name string, parts ...[]byte) []byte {
	out := append(make([]byte, 4), name...)
	for _, p := range parts {
		out = append(out, p...)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out
}

func zeros(n int) []byte { return make([]byte, n) }

// unityMatrix is the transformation that changes nothing.
var unityMatrix = []byte{
	0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0,
}

// track is what the muxer needs to know about a video.
type track struct {
	width, height, rate int
	sps, pps            []byte
	samples             [][]byte // one NAL unit each
}

// mux writes the file.
func (t *track) mux() []byte {
	ftyp := mp4Box("ftyp", []byte("isom"), be32(512), []byte("isomiso2avc1mp41"))
	// The chunk's place depends on the length of moov, which does not depend on it.
	moov := t.moov(0)
	moov = t.moov(len(ftyp) + len(moov) + 8)
	out := append(ftyp, moov...)
	size := 8
	for _, s := range t.samples {
		size += 4 + len(s)
	}
	out = append(out, be32(size)...)
	out = append(out, "mdat"...)
	for _, s := range t.samples {
		out = append(out, be32(len(s))...)
		out = append(out, s...)
	}
	return out
}

func (t *track) moov(chunk int) []byte {
	n := len(t.samples)
	mvhd := mp4Box("mvhd", zeros(12), be32(t.rate), be32(n), be32(0x10000), be16(0x100), zeros(10),
		unityMatrix, zeros(24), be32(2))
	tkhd := mp4Box("tkhd", be32(3), zeros(8), be32(1), zeros(4), be32(n), zeros(16), unityMatrix,
		be32(t.width<<16), be32(t.height<<16))
	mdhd := mp4Box("mdhd", zeros(12), be32(t.rate), be32(n), be16(0x55C4), be16(0)) // language und
	hdlr := mp4Box("hdlr", zeros(8), []byte("vide"), zeros(12), []byte("video\x00"))
	dinf := mp4Box("dinf", mp4Box("dref", zeros(4), be32(1), mp4Box("url ", be32(1))))
	minf := mp4Box("minf", mp4Box("vmhd", be32(1), zeros(8)), dinf, t.sampleTable(chunk))
	return mp4Box("moov", mvhd, mp4Box("trak", tkhd, mp4Box("mdia", mdhd, hdlr, minf)))
}

func (t *track) sampleTable(chunk int) []byte {
	n := len(t.samples)
	avcC := mp4Box("avcC", []byte{1, profileIDC, profileFlags, levelIDC, 0xFF, 0xE1},
		be16(len(t.sps)), t.sps, []byte{1}, be16(len(t.pps)), t.pps)
	avc1 := mp4Box("avc1", zeros(6), be16(1), zeros(16), be16(t.width), be16(t.height),
		be32(0x480000), be32(0x480000), zeros(4), be16(1), zeros(32), be16(24), be16(0xFFFF), avcC)
	sizes := [][]byte{zeros(8), be32(n)}
	for _, s := range t.samples {
		sizes = append(sizes, be32(4+len(s)))
	}
	return mp4Box("stbl",
		mp4Box("stsd", zeros(4), be32(1), avc1),
		mp4Box("stts", zeros(4), be32(1), be32(n), be32(1)),
		mp4Box("stsc", zeros(4), be32(1), be32(1), be32(n), be32(1)),
		mp4Box("stsz", sizes...),
		mp4Box("stco", zeros(4), be32(1), be32(chunk)))
}

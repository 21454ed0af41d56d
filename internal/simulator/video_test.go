package simulator

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestVideoIsDeterministic(t *testing.T) {
	t.Parallel()
	seen := map[string]uint64{}
	for seed := range uint64(20) {
		body := Video(seed)
		if !bytes.Equal(body, Video(seed)) {
			t.Errorf("seed %d: two different files", seed)
		}
		if other, ok := seen[string(body)]; ok {
			t.Errorf("seeds %d and %d: one file", other, seed)
		}
		seen[string(body)] = seed
		if len(body) > 200_000 {
			t.Errorf("seed %d: %d bytes", seed, len(body))
		}
	}
}

// boxes splits a run of MP4 boxes.
func boxes(t *testing.T, data []byte) (names []string, bodies map[string][]byte) {
	t.Helper()
	bodies = map[string][]byte{}
	for len(data) > 0 {
		size := int(binary.BigEndian.Uint32(data))
		if size < 8 || size > len(data) {
			t.Fatalf("box of %d bytes in %d", size, len(data))
		}
		name := string(data[4:8])
		names = append(names, name)
		bodies[name] = data[8:size]
		data = data[size:]
	}
	return names, bodies
}

func TestVideoStructure(t *testing.T) {
	t.Parallel()
	file := Video(1)
	names, top := boxes(t, file)
	if len(names) != 3 || names[0] != "ftyp" || names[1] != "moov" || names[2] != "mdat" {
		t.Fatalf("boxes: %v", names)
	}
	data := top["moov"]
	for _, name := range []string{"trak", "mdia", "minf", "stbl"} {
		_, inner := boxes(t, data)
		data = inner[name]
	}
	_, stbl := boxes(t, data)
	be := binary.BigEndian
	if n := be.Uint32(stbl["stsz"][8:]); n != videoFrames {
		t.Fatalf("%d samples", n)
	}
	at := be.Uint32(stbl["stco"][8:])
	for i := range uint32(videoFrames) {
		size := be.Uint32(stbl["stsz"][12+4*i:])
		if length := be.Uint32(file[at:]); length != size-4 {
			t.Errorf("sample %d: NAL of %d in %d bytes", i, length, size)
		}
		if file[at+4] != nalIDR {
			t.Errorf("sample %d begins with %#x", i, file[at+4])
		}
		if nal := file[at+4 : at+size]; bytes.Contains(nal, []byte{0, 0, 1}) || bytes.Contains(nal, []byte{0, 0, 0}) {
			t.Errorf("sample %d contains a start code", i)
		}
		at += size
	}
	if int(at) != len(file) {
		t.Errorf("samples end at %d of %d", at, len(file))
	}
}

// A decoder that is not ours gives back exactly the samples that were drawn.
func TestVideoDecodes(t *testing.T) {
	t.Parallel()
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed; the structure is tested without it")
	}
	path := filepath.Join(t.TempDir(), "x.mp4")
	if err := os.WriteFile(path, Video(5), 0o600); err != nil {
		t.Fatal(err)
	}
	var raw, complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), ffmpeg, "-v", "error", "-i", path, "-pix_fmt", "yuv420p", "-f", "rawvideo", "-")
	cmd.Stdout, cmd.Stderr = &raw, &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		t.Fatalf("ffmpeg: %v: %s", err, complaints.String())
	}
	var want bytes.Buffer
	for n := range videoFrames {
		p := newScene(5).frame(n)
		want.Write(p.luma)
		want.Write(p.cb)
		want.Write(p.cr)
	}
	if !bytes.Equal(raw.Bytes(), want.Bytes()) {
		t.Errorf("decoded %d bytes, drawn %d, and they differ", raw.Len(), want.Len())
	}
}

func TestStartCodesAreEscaped(t *testing.T) {
	t.Parallel()
	var w bitWriter
	w.bytes([]byte{0, 0, 0, 0, 0, 1, 9, 0, 0, 3, 0, 0, 4})
	want := []byte{0x65, 0, 0, 3, 0, 0, 3, 0, 1, 9, 0, 0, 3, 3, 0, 0, 4, 0x80}
	if got := w.finish(0x65); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestExpGolomb(t *testing.T) {
	t.Parallel()
	var w bitWriter
	for _, v := range []uint{0, 1, 2, 7, 25} { // 1 010 011 0001000 000011010
		w.ue(v)
	}
	if want := []byte{0xA6, 0x20, 0x34}; !bytes.Equal(w.buf, want) {
		t.Errorf("got %x, want %x", w.buf, want)
	}
}

func BenchmarkVideo(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Video(1)
	}
}

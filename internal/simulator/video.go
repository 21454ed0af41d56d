package simulator

// The format of an output; videoFormat changes with anything that changes the
// bytes, since it is part of their ETag.
const (
	videoFormat = 1
	videoWidth  = 96
	videoHeight = 64
	videoFrames = 16
	videoRate   = 8 // frames a second
)

// Video is the output of a job with this seed: a two-second MP4 (H.264
// Baseline, 96×64) of a kite over a moving sky, about 150 kB. The same seed
// gives the same bytes, another seed other ones.
func Video(seed uint64) []byte {
	t := track{
		width: videoWidth, height: videoHeight, rate: videoRate,
		sps: sequenceSet(videoWidth, videoHeight), pps: pictureSet(),
	}
	sky := newScene(seed)
	for n := range videoFrames {
		t.samples = append(t.samples, sky.frame(n).slice(n))
	}
	return t.mux()
}

// scene is what the seed decides about the pictures.
type scene struct {
	skyCb, skyCr, kiteCb, kiteCr byte
	slope, drift                 int
	x, y, stepX, stepY, radius   int
	grain                        uint64
}

func newScene(seed uint64) scene {
	part := func(n, from, to int) int {
		return from + int(mix(mixName("scene"), seed, uint64(n))%uint64(to-from+1))
	}
	return scene{
		skyCb: byte(part(0, 110, 200)), skyCr: byte(part(1, 60, 130)),
		kiteCb: byte(part(2, 40, 110)), kiteCr: byte(part(3, 170, 235)),
		slope: part(4, 1, 3), drift: part(5, 1, 5),
		x: part(6, 20, 70), y: part(7, 16, 44), stepX: part(8, -2, 2), stepY: part(9, -1, 1),
		radius: part(10, 8, 14), grain: seed,
	}
}

// frame draws the n-th picture. The first row of samples carries the seed and
// the frame number, so that no two of them are the same picture by chance.
func (s scene) frame(n int) *picture {
	p := newPicture(videoWidth, videoHeight)
	kiteX, kiteY := s.x+n*s.stepX, s.y+n*s.stepY
	for y := range p.height {
		for x := range p.width {
			at := y*p.width + x
			p.luma[at] = byte(60 + (y*s.slope+x+n*s.drift)%120)
			half := y/2*(p.width/2) + x/2
			p.cb[half], p.cr[half] = s.skyCb, s.skyCr
			if d := abs(x-kiteX)*3/2 + abs(y-kiteY); d <= s.radius {
				p.luma[at] = byte(225 - 6*d)
				p.cb[half], p.cr[half] = s.kiteCb, s.kiteCr
			} else if x == kiteX && y > kiteY {
				p.luma[at] = 30 // the line
			}
		}
	}
	for x := range p.width {
		p.luma[x] = byte(16 + mix(s.grain, uint64(n), uint64(x))%220)
	}
	return p
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

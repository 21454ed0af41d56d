package openaivideo

import "testing"

func TestSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ resolution, ratio, want string }{
		{"", "", ""}, {"720p", "", "1280x720"}, {"", "9:16", "720x1280"}, {"1080p", "16:9", "1920x1080"}, {"1080P", "9:16", "1080x1920"}, {"720", "1:1", "720x720"},
		{"1792x1024", "9:16", "1792x1024"}, {" 480p ", " 4:3 ", "640x480"}, {"721p", "16:9", "1282x721"}, {"720p", "21:9", "1680x720"},
		{"4k", "", "!"}, {"0p", "", "!"}, {"99999p", "", "!"}, {"720p", "16/9", "!"}, {"720p", "0:9", "!"}, {"720p", "1000:1", "!"}, {"-720p", "", "!"}, {"1280x", "", "!"},
	} {
		got, err := size(c.resolution, c.ratio)
		if err != nil {
			got = "!"
		}
		if got != c.want {
			t.Errorf("%q, %q: %q, want %q (%v)", c.resolution, c.ratio, got, c.want, err)
		}
	}
}

package simulator

import (
	"testing"
	"time"
)

func TestSign(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, id, body, want string
		at                   int64
	}{
		{
			"published vector", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`,
			"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", 1614265330,
		},
		{
			"thin video event", "wh_f1",
			`{"object":"event","id":"evt_f1","type":"video.completed","created_at":1790000300,"data":{"id":"video_f1"}}`,
			"v1,NGAJiVl856qMJ4EFwg9W8iADAeRU1AHSEDFXhh4kW3U=", 1790000301,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sign := func(secret, id string, at int64, body []byte) string {
				got, err := Sign(secret, id, time.Unix(at, 0), body)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			if got := sign(testSecret, tc.id, tc.at, []byte(tc.body)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := sign(testSecret[len(secretPrefix):], tc.id, tc.at, []byte(tc.body)); got != tc.want {
				t.Errorf("without prefix: got %s, want %s", got, tc.want)
			}
			for i := range tc.body {
				changed := []byte(tc.body)
				changed[i] ^= 1
				if sign(testSecret, tc.id, tc.at, changed) == tc.want {
					t.Fatalf("byte %d changed, signature did not", i)
				}
			}
			if sign(testSecret, tc.id, tc.at+1, []byte(tc.body)) == tc.want {
				t.Error("time changed, signature did not")
			}
			if sign(testSecret, tc.id+"x", tc.at, []byte(tc.body)) == tc.want {
				t.Error("id changed, signature did not")
			}
		})
	}
}

func TestSignRefusesBadSecrets(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "whsec_", "whsec_***"} {
		if _, err := Sign(secret, "msg_1", time.Unix(0, 0), nil); err == nil {
			t.Errorf("secret %q was accepted", secret)
		}
	}
}

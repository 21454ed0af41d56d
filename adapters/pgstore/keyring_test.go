package pgstore

import (
	"bytes"
	"errors"
	"testing"
)

func testKeyring() Keyring {
	return Keyring{Current: "2", Keys: map[string][]byte{"1": bytes.Repeat([]byte{1}, 32), "2": bytes.Repeat([]byte{2}, 32)}}
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	k := testKeyring()
	for _, plain := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("payload"), 1000)} {
		sealed := k.seal("acme\x00k", plain)
		if len(plain) > 4 && bytes.Contains(sealed, plain[:4]) {
			t.Error("the sealed bytes show the payload")
		}
		got, err := k.open("2", "acme\x00k", sealed)
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("open: %d bytes, %v; want %d", len(got), err, len(plain))
		}
	}
	if bytes.Equal(k.seal("i", []byte("same")), k.seal("i", []byte("same"))) {
		t.Error("two rows were sealed alike")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	k := testKeyring()
	sealed := k.seal("identity", []byte("payload"))
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	cases := map[string]struct {
		version, identity string
		sealed            []byte
	}{
		"another key":     {"1", "identity", sealed},
		"an unknown key":  {"3", "identity", sealed},
		"another row":     {"2", "another", sealed},
		"a changed byte":  {"2", "identity", changed},
		"too few bytes":   {"2", "identity", sealed[:10]},
		"a cut":           {"2", "identity", sealed[:len(sealed)-1]},
		"nothing":         {"2", "identity", nil},
		"no key version":  {"", "identity", sealed},
		"salt and nonce":  {"2", "identity", sealed[:saltSize+nonceSize]},
		"a changed salt":  {"2", "identity", append([]byte{sealed[0] ^ 1}, sealed[1:]...)},
		"a changed nonce": {"2", "identity", append(bytes.Clone(sealed[:saltSize]), append([]byte{sealed[saltSize] ^ 1}, sealed[saltSize+1:]...)...)},
	}
	for name, c := range cases {
		if _, err := k.open(c.version, c.identity, c.sealed); !errors.Is(err, errSealed) {
			t.Errorf("%s: %v, want %v", name, err, errSealed)
		}
	}
}

func TestOldKeyStillOpens(t *testing.T) {
	t.Parallel()
	k := testKeyring()
	k.Current = "1"
	sealed := k.seal("identity", []byte("old"))
	k.Current = "2"
	if got, err := k.open("1", "identity", sealed); err != nil || string(got) != "old" {
		t.Errorf("after the key was changed: %q, %v", got, err)
	}
}

func TestKeyringValidate(t *testing.T) {
	t.Parallel()
	if err := testKeyring().Validate(); err != nil {
		t.Errorf("a good keyring: %v", err)
	}
	for name, k := range map[string]Keyring{
		"empty": {}, "no current": {Current: "1", Keys: map[string][]byte{"2": make([]byte, 32)}},
		"short key": {Current: "1", Keys: map[string][]byte{"1": make([]byte, 16)}},
	} {
		if k.Validate() == nil {
			t.Errorf("%s keyring is accepted", name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k := testKeyring()
	f.Add("2", "identity", k.seal("identity", []byte("payload")))
	f.Add("", "", []byte(nil))
	f.Fuzz(func(t *testing.T, version, identity string, sealed []byte) {
		plain, err := k.open(version, identity, sealed)
		if err == nil && len(plain)+saltSize+nonceSize+16 != len(sealed) {
			t.Errorf("%d bytes opened from %d", len(plain), len(sealed))
		}
		if err != nil && !errors.Is(err, errSealed) {
			t.Errorf("error %v", err)
		}
	})
}

package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// remote says which server a command talks to, and as whom.
type remote struct {
	URL    string `help:"Address of the server." env:"AIVEDIO_URL" placeholder:"URL"`
	APIKey string `name:"api-key" help:"API key." env:"AIVEDIO_API_KEY" placeholder:"ak_…"`
	Data   string `help:"Folder of a running dev, whose address and key are used where none are given." env:"AIVEDIO_DATA" placeholder:"DIR" type:"path"`
}

// target is a server and a project on it.
type target struct {
	remote
	Project string `help:"Project id; a running dev has one of its own." env:"AIVEDIO_PROJECT" placeholder:"prj_…"`
}

// Address and key belong together: the key of a dev must not reach another server.
var (
	errNoKey = errors.New("a server is named without a key: give --api-key (AIVEDIO_API_KEY), or leave --url (AIVEDIO_URL) out for the running dev")
	errNoURL = errors.New("a key is given without a server: give --url (AIVEDIO_URL), or leave --api-key (AIVEDIO_API_KEY) out for the running dev")
)

// client completes the server from the file of a running dev.
func (r remote) client() (*apiClient, error) { return target{remote: r}.open(false) }

// client completes the target from the file of a running dev.
func (t target) client() (*apiClient, error) { return t.open(true) }

func (t target) open(wantProject bool) (*apiClient, error) {
	switch {
	case t.URL != "" && t.APIKey == "":
		return nil, errNoKey
	case t.URL == "" && t.APIKey != "":
		return nil, errNoURL
	case t.URL == "":
		f, err := readDevFile(t.Data)
		if err != nil {
			return nil, fmt.Errorf("%w, or name a server with --url and --api-key (AIVEDIO_URL, AIVEDIO_API_KEY)", err)
		}
		t.URL, t.APIKey, t.Project = f.URL, f.APIKey, either(t.Project, f.Project)
	case wantProject && t.Project == "":
		return nil, errors.New("no project is named: give --project (AIVEDIO_PROJECT)")
	}
	if u, err := url.Parse(t.URL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("the address %q is not a URL such as https://api.example.com", t.URL)
	}
	if !headerText(t.APIKey) {
		return nil, errors.New("the API key has characters that no key has; was more copied than the key?")
	}
	return newClient(t.URL, t.Project, t.APIKey), nil
}

// headerText reports whether a header can carry s as it is: visible ASCII.
func headerText(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
}

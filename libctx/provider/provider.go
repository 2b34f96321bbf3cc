package provider

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Formats are the wire formats a provider file can name.
var Formats = []string{"openai.chat", "openai.responses", "anthropic.messages", "google.generate"}

// Debug is the name of the built-in provider; no file can have it.
const Debug = "debug"

// DefaultSlot is the slot of the key where a provider file names none.
const DefaultSlot = "default"

// Whether a provider wants a key.
const (
	KeyRequired = "required"
	KeyNone     = "none"
)

// Provider is a provider file. Parse and Save check it.
type Provider struct {
	Name     string  `json:"name"`
	Format   string  `json:"format"`
	BaseURL  string  `json:"base_url"` // without a slash at its end
	Proxy    string  `json:"proxy,omitzero"`
	Insecure bool    `json:"insecure,omitzero"` // plain http to another machine is meant
	Key      string  `json:"key"`               // KeyRequired or KeyNone
	KeySlot  string  `json:"key_slot,omitzero"` // "" is DefaultSlot
	Models   []Model `json:"models"`            // sorted by entry name, each once
}

// Model is one model of a provider file. Limit and MaxOutput are tokens; 0 is
// not known.
type Model struct {
	ID        string `json:"id"`                  // the provider's own name
	Name      string `json:"name,omitzero"`       // of our entry, if it is not ID
	Limit     uint32 `json:"limit,omitzero"`      // of the context
	MaxOutput uint32 `json:"max_output,omitzero"` // of one answer
}

// Entry is the name of the model's entry in the tree, below the provider's.
func (m Model) Entry() string {
	if m.Name != "" {
		return m.Name
	}
	return m.ID
}

// Slot is the slot of the provider's key.
func (p *Provider) Slot() string {
	if p.KeySlot != "" {
		return p.KeySlot
	}
	return DefaultSlot
}

// Model finds a model by the name of its entry.
func (p *Provider) Model(entry string) (Model, bool) {
	for _, m := range p.Models {
		if m.Entry() == entry {
			return m, true
		}
	}
	return Model{}, false
}

// EntryName makes an entry name of a provider's own name for a model: each byte
// that no name can hold becomes "-". It is "" if nothing of a name is left.
// Different models can get the same one; a provider file refuses that.
func EntryName(id string) string {
	b := []byte(id)
	for i, c := range b {
		alnum := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && strings.IndexByte("._+-", c) < 0 {
			b[i] = '-'
		}
	}
	name := strings.TrimLeft(string(b), "._+-")
	name = name[:min(len(name), libctx.MaxName)]
	for strings.HasSuffix(name, ".sock") || strings.HasSuffix(name, ".d") {
		name = name[:strings.LastIndexByte(name, '.')]
	}
	return name
}

// CheckName refuses what is no name of a provider: they have the object grammar.
func CheckName(name string) error { return checkName("provider name", name) }

func checkName(kind, name string) error {
	_, err := libctx.ParseTool(name)
	var bad *libctx.NameError
	if errors.As(err, &bad) {
		return &libctx.NameError{Kind: kind, Value: bad.Value, Why: bad.Why}
	}
	return err
}

// Parse reads a provider file. Every error is errdefs.Invalid.
func Parse(text []byte) (*Provider, error) {
	if err := linefile.Check(text); err != nil {
		return nil, err
	}
	p := new(Provider)
	if err := wire.Object(text, p, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Models == nil {
		p.Models = []Model{}
	}
	return p, nil
}

// Marshal is the canonical text of a provider file: one line, ended by LF. A
// file that Parse would refuse is refused.
func (p *Provider) Marshal() ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	text, err := wire.Marshal(p)
	if err == nil && len(text) > libctx.MaxControlFile {
		err = errdefs.New(errdefs.Invalid, "provider %s: its file is longer than %d bytes", p.Name, libctx.MaxControlFile)
	}
	return text, err
}

// Check refuses what no provider file can say, errdefs.Invalid.
func (p *Provider) Check() error {
	if err := CheckName(p.Name); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return errdefs.New(errdefs.Invalid, "provider "+p.Name+": "+format, args...)
	}
	switch {
	case p.Name == Debug:
		return bad("the name is of the built-in provider")
	case !slices.Contains(Formats, p.Format):
		return bad("format %.80q is none of %s", p.Format, strings.Join(Formats, ", "))
	case p.Key != KeyRequired && p.Key != KeyNone:
		return bad("key is not %q or %q", KeyRequired, KeyNone)
	case p.KeySlot == DefaultSlot:
		return bad("key_slot %q goes without saying", DefaultSlot)
	case p.Key == KeyNone && p.KeySlot != "":
		return bad("has a key_slot and no key")
	case len(p.Models) > libctx.MaxProviderModels:
		return bad("%d models are more than %d", len(p.Models), libctx.MaxProviderModels)
	}
	if p.KeySlot != "" {
		if err := checkName("slot", p.KeySlot); err != nil {
			return bad("key_slot: %w", err)
		}
	}
	if err := checkBase(p.BaseURL, p.Insecure); err != nil {
		return bad("base_url: %w", err)
	}
	if p.Proxy != "" {
		if err := checkProxy(p.Proxy); err != nil {
			return bad("proxy: %w", err)
		}
	}
	for i, m := range p.Models {
		if err := m.check(); err != nil {
			return bad("model %.80q: %w", m.ID, err)
		}
		if i > 0 && p.Models[i-1].Entry() >= m.Entry() {
			return bad("model %.80q: models are not sorted by entry name, each once", m.ID)
		}
	}
	return nil
}

func (m Model) check() error {
	if m.ID == "" || len(m.ID) > libctx.MaxModelID {
		return errdefs.New(errdefs.Invalid, "id is not 1 to %d bytes", libctx.MaxModelID)
	}
	if _, control := linefile.Control(m.ID, ""); control {
		return errdefs.New(errdefs.Invalid, "id holds a control character")
	}
	if m.Name == m.ID {
		return errdefs.New(errdefs.Invalid, "name is the same as id")
	}
	if err := checkName("entry name", m.Entry()); err != nil {
		return err
	}
	if m.Limit != 0 && m.MaxOutput > m.Limit {
		return errdefs.New(errdefs.Invalid, "max_output is more than limit")
	}
	return nil
}

// checkURL wants an absolute URL of one of the schemes with nothing but a host
// and a path in it, so that no secret and no other question hides there.
func checkURL(text string, schemes ...string) (*url.URL, error) {
	if len(text) > libctx.MaxURL {
		return nil, errdefs.New(errdefs.Invalid, "is longer than %d bytes", libctx.MaxURL)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return nil, errdefs.New(errdefs.Invalid, "holds a character that no URL can hold")
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errdefs.New(errdefs.Invalid, "is not a URL") // the error quotes all of it
	case !slices.Contains(schemes, u.Scheme):
		return nil, errdefs.New(errdefs.Invalid, "does not begin with %s://", strings.Join(schemes, ":// or "))
	case u.User != nil:
		return nil, errdefs.New(errdefs.Invalid, "holds a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.ContainsRune(text, '#'):
		return nil, errdefs.New(errdefs.Invalid, "holds a query or fragment")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errdefs.New(errdefs.Invalid, "names no host")
	case u.String() != text:
		return nil, errdefs.New(errdefs.Invalid, "is not in its usual form, %.200s", u.String())
	}
	return u, nil
}

func checkBase(text string, insecure bool) error {
	if path, ok := socketPath(text); ok {
		return errdefs.New(errdefs.Invalid, "is a Unix socket; providers are reached over http and https").
			WithHint("let something listen for it on this machine: socat TCP-LISTEN:8080,bind=127.0.0.1,fork UNIX-CONNECT:%.200s", path)
	}
	u, err := checkURL(text, "http", "https")
	switch {
	case err != nil:
		return err
	case strings.HasSuffix(text, "/"):
		return errdefs.New(errdefs.Invalid, "ends in a slash")
	case u.Scheme == "http" && !insecure && !Loopback(u.Hostname()):
		return errdefs.New(errdefs.Invalid, "plain http to another machine shows the key to everybody between").
			WithHint(`use https; or --insecure, which is "insecure":true in the provider's file`)
	}
	return nil
}

// socketPath is the path of a Unix socket in one of the spellings that other
// programs take for one.
func socketPath(text string) (string, bool) {
	for _, scheme := range []string{"unix:", "http+unix:", "https+unix:"} {
		if path, ok := strings.CutPrefix(text, scheme); ok {
			return inert.Line(strings.TrimPrefix(path, "//")), true
		}
	}
	return inert.Line(text), strings.HasPrefix(text, "/") && strings.HasSuffix(text, ".sock")
}

func checkProxy(text string) error {
	u, err := checkURL(text, "http", "https", "socks5")
	if err == nil && u.Path != "" {
		err = errdefs.New(errdefs.Invalid, "holds a path")
	}
	return err
}

// Loopback reports whether a host name of a URL is this machine by its spelling:
// localhost or a loopback address.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

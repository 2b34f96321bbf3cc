package provider

import (
	"fmt"
	"io"
)

// Secret is a key. However it is printed or encoded, it says "[redacted]";
// Reveal is the only way to its text. The zero value is no key.
//
// The text stands in a closure: a printer that does not ask our methods, because
// the secret is an unexported member of something, finds an address.
type Secret struct{ reveal func() string }

const redacted = "[redacted]"

// NewSecret makes a secret of a text; of "" the zero value.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{func() string { return text }}
}

// Reveal returns the text of the key, "" of the zero value. It belongs into a
// request to its provider and nowhere else.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Empty reports whether there is no key.
func (s Secret) Empty() bool { return s.reveal == nil }

func (s Secret) String() string { return redacted }

// GoString is String.
func (s Secret) GoString() string { return redacted }

// Format is String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

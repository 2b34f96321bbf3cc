package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
)

const canary = "sk-canary-0123456789"

// Whatever prints a secret, or something that holds one, prints no key.
func TestSecretIsNeverPrinted(t *testing.T) {
	key := NewSecret(canary)
	type open struct {
		Name string
		Key  Secret
	}
	type closed struct {
		name string
		key  Secret
		at   *Secret
	}
	values := []any{
		key, &key, open{"x", key}, &open{"x", key}, closed{"x", key, &key}, &closed{"x", key, &key}, []Secret{key}, map[string]Secret{"x": key},
		map[string]any{"x": closed{"x", key, &key}}, fmt.Errorf("with %v", key), errdefs.New(errdefs.Denied, "with %s and %q", key, key), errors.Join(fmt.Errorf("%+v", key)),
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.3s", "%p"} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, canary) || strings.Contains(s, fmt.Sprintf("%x", canary)) {
				t.Errorf("%s of a %T: %s", verb, v, s)
			}
		}
		if s := fmt.Sprint(v); strings.Contains(s, canary) {
			t.Errorf("Sprint of a %T: %s", v, s)
		}
		if b, err := json.Marshal(v); strings.Contains(string(b), canary) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("JSON of a %T: %s, %v", v, b, err)
		}
	}
	if fmt.Sprint(key) != "[redacted]" || fmt.Sprintf("%#v", key) != "[redacted]" {
		t.Error("does not say that it is redacted")
	}
	if key.Reveal() != canary || key.Empty() {
		t.Error("does not reveal itself")
	}
	if none := NewSecret(""); !none.Empty() || none.Reveal() != "" || fmt.Sprint(none) != "[redacted]" {
		t.Error("no key is told from a key by printing it")
	}
}

package model

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// TestEchoes: a provider that says the key, cut at each place, in every frame and
// member that has words of it, says it to nobody.
func TestEchoes(t *testing.T) {
	say := func(form string, fail bool) driver {
		return func(_ context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out Sink) error {
			frames := []modelwire.Frame{&modelwire.Start{Model: g.Model, RequestID: "r-" + form}}
			for i := range len(form) + 1 {
				frames = append(frames,
					&modelwire.Delta{Text: form[:i]}, &modelwire.ReasoningDelta{Text: form[:i]},
					&modelwire.Delta{Text: form[i:]}, &modelwire.ReasoningDelta{Text: form[i:] + " "}, &modelwire.Delta{Text: "\n"})
			}
			frames = append(frames, &modelwire.CallStart{Index: 0, ID: form, Name: form}, &modelwire.CallStart{Index: 1, ID: "c", Name: "n"})
			for i := range len(form) + 1 {
				frames = append(frames, &modelwire.CallDelta{Index: 0, Text: form[:i]}, &modelwire.CallDelta{Index: 1, Text: form[:i]},
					&modelwire.CallDelta{Index: 1, Text: form[i:]}, &modelwire.CallDelta{Index: 0, Text: form[i:] + " "})
			}
			frames = append(frames, &modelwire.CallEnd{Index: 0})
			content := []wire.Part{
				{Type: "reasoning", Text: form + form[:3]}, wire.Text("it is " + form[:9]), {Type: "reasoning", Text: form[3:]},
				modelwire.Call(1, form, "{}"), wire.Text(form[9:] + "!"), modelwire.Call(2, "tsh", `{"`+form+`":["`+form+`"]}`), modelwire.Call(3, "tsh", form),
				modelwire.Call(4, "tsh", strings.Repeat("x", libctx.MaxInvalid-40)+form),
			}
			if !fail {
				frames = append(frames, &modelwire.MessageFrame{Content: content, Stop: modelwire.StopToolCalls, Opaque: &modelwire.Opaque{
					Provider: "lab", Model: g.Model, Data: jsontext.Value(`[{"sig":"` + form + `"}]`),
				}})
			}
			for _, f := range frames {
				if err := out.Send(f); err != nil {
					return err
				}
			}
			if fail {
				return modelwire.Fail(errdefs.Provider, modelwire.PhaseProvider, modelwire.ClassOther, "it was %s", form).WithCode(form)
			}
			return nil
		}
	}
	escaped := ""
	for i := range len(canary) {
		escaped += `\u00` + "0123456789abcdef"[canary[i]>>4:][:1] + "0123456789abcdef"[canary[i]&15:][:1]
	}
	for name, form := range map[string]string{
		"verbatim": canary, "base64": base64.StdEncoding.EncodeToString([]byte(canary + "  ")),
		"shifted": base64.RawURLEncoding.EncodeToString([]byte(" " + canary + " ")), "percent": strings.ReplaceAll(canary, "-", "%2d"), "escaped": escaped,
	} {
		for _, fail := range []bool{false, true} {
			b := serve(t, say(form, fail), nil)
			stable := form
			if name == "base64" || name == "shifted" {
				stable = form[2 : len(form)-3] // the ends are of the bytes beside it too
			}
			joined := map[string]string{}
			for _, f := range b.dial().say(hello).answer("generate") {
				line, err := modelwire.MarshalFrame(f)
				must(t, err)
				if s := string(line); strings.Contains(s, stable) || strings.Contains(s, canary) {
					t.Errorf("%s: %s", name, s)
				}
				switch f := f.(type) {
				case *modelwire.Delta:
					joined["text"] += f.Text
				case *modelwire.ReasoningDelta:
					joined["reasoning"] += f.Text
				case *modelwire.CallDelta:
					joined["call"+string(rune('0'+f.Index))] += f.Text
				case *modelwire.MessageFrame:
					for _, p := range f.Content {
						joined["message "+p.Type] += p.Text + p.Invalid
					}
					if name == "verbatim" && !strings.Contains(joined["message text"], "it is [redacted]!") {
						t.Errorf("text: %s", joined["message text"])
					}
					if strings.Contains(joined["message tool_call"], canary[:6]) {
						t.Errorf("%s: the beginning is there: %s", name, joined["message tool_call"])
					}
				}
			}
			for kind, text := range joined {
				if strings.Contains(text, stable) || strings.Contains(text, canary) {
					t.Errorf("%s: %s: %s", name, kind, text)
				}
			}
			if name == "verbatim" && joined["text"] != strings.Repeat("[redacted]\n", len(form)+1) {
				t.Errorf("%s: %q", name, joined["text"])
			}
		}
	}
}

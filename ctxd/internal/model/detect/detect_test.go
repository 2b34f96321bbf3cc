package detect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"github.com/google/go-cmp/cmp"
)

func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, body)
	}
}

func TestAmong(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	good := serve(t, says(`{"object":"list","data":[{"id":"llama3:8b","new":1},{"id":"a/b"},{"id":"a/b"},{"id":""},{"id":"bad\u001b"},{"id":"`+strings.Repeat("x", 300)+`"}]}`))
	empty := serve(t, says(`{"data":[]}`))
	var many strings.Builder
	for i := range libctx.MaxProviderModels + 10 {
		fmt.Fprintf(&many, `{"id":"m%d"},`, i)
	}
	full := serve(t, says(`{"data":[`+strings.TrimSuffix(many.String(), ",")+`]}`))
	servers := []Server{
		{"nobody", nobody.Addr().String()},
		{"good", good},
		{"page", serve(t, says(`<html>`))},
		{"other", serve(t, says(`{"models":[]}`))},
		{"refuses", serve(t, http.NotFound)},
		{"moved", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+good+"/v1/models", http.StatusFound)
		})},
		{"endless", serve(t, says(`{"data":[{"id":"`+strings.Repeat("x", libctx.MaxDetectBody)))},
		{"empty", empty},
		{"full", full},
	}
	var got []modelwire.Found
	if err := among(t.Context(), servers, func(f *modelwire.Found) error {
		if _, err := modelwire.MarshalFrame(f); err != nil {
			t.Error(err)
		}
		got = append(got, *f)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || len(got[2].Models) != libctx.MaxProviderModels {
		t.Fatalf("%d are found", len(got))
	}
	want := []modelwire.Found{
		{Name: "good", Format: "openai.chat", BaseURL: "http://" + good + "/v1", Models: []string{"llama3:8b", "a/b"}},
		{Name: "empty", Format: "openai.chat", BaseURL: "http://" + empty + "/v1", Models: []string{}},
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("nobody reads")
	if err := among(t.Context(), servers[:2], func(*modelwire.Found) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	err := among(ctx, []Server{{"slow", addr}}, func(*modelwire.Found) error {
		t.Error("something is found")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

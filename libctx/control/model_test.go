package control

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

var modelTexts = map[string][]string{
	"cap":        {"", "chat\n", "chat\nstream\nsession\nvision\naudio_input\naudio_output\njson_schema\ntool_call_syntax\nreasoning\nembedding\nrerank\n"},
	"default":    {"", "temperature=0.2\n", "script=/srv/a b.jsonl\ntop_p=\n"},
	"driver":     {"debug\n", "openai.chat\n"},
	"effort":     {"auto\n", "xhigh\n"},
	"fallback":   {"", "debug/echo\n", "b/x\na/x\n"},
	"id":         {"debug/echo\n", "openai/gpt-5.1\n"},
	"limit":      {"unknown\n", "1\n", "200000\n", "4294967295\n"},
	"log":        {"", "anything\r\nat all"},
	"max_output": {"1\n", "8192\n", "4294967295\n"},
	"status":     {"ready\n"},
}

var refusedModelTexts = []refusedText{
	{"cap", "tools\n", 1, "tools"},
	{"cap", "chat\nopenai_responses\n", 2, "openai_responses"},
	{"cap", "chat\nchat\n", 2, "chat"},
	{"cap", "chat stream\n", 1, "chat stream"},
	{"default", "temperature\n", 1, "temperature"},
	{"default", "a=1\na=2\n", 2, "a"},
	{"default", "a.b=1\n", 1, "a.b"},
	{"default", "a=\x1b[1m\n", 1, "a"},
	{"driver", "exec,socket\n", 1, "exec,socket"},
	{"driver", "open ai\n", 1, "open ai"},
	{"driver", "debug\necho\n", 2, "echo"},
	{"effort", "max\n", 1, "max"},
	{"fallback", "main\n", 1, "main"},
	{"fallback", "a/b\na/b\n", 2, "a/b"},
	{"fallback", "a/b/c\n", 1, "b/c"},
	{"id", "main\n", 1, "main"},
	{"id", "a/../b\n", 1, "../b"},
	{"id", "a/b", 1, "a/b"},
	{"limit", "auto\n", 1, "auto"},
	{"limit", "Unknown\n", 1, "Unknown"},
	{"limit", "0\n", 1, "0"},
	{"limit", "+8000\n", 1, "+8000"},
	{"limit", "08000\n", 1, "08000"},
	{"limit", "4294967296\n", 1, "4294967296"},
	{"limit", " 8000\n", 1, " 8000"},
	{"limit", "8000\n8000\n", 2, "8000"},
	{"limit", "", 1, ""},
	{"max_output", "0\n", 1, "0"},
	{"max_output", "unknown\n", 1, "unknown"},
	{"max_output", "4294967296\n", 1, "4294967296"},
	{"window", "auto\n", 0, "window"},
}

func TestFallbacksAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range libctx.MaxFallbacks {
		fmt.Fprintf(&b, "p/m%d\n", i)
	}
	if all, err := ParseFallback([]byte(b.String())); err != nil || len(all) != libctx.MaxFallbacks {
		t.Errorf("%d models: %v", len(all), err)
	}
	b.WriteString("p/more\n")
	if all, err := ParseFallback([]byte(b.String())); !errdefs.Is(err, errdefs.Invalid) || all != nil {
		t.Errorf("one more: %v, %v", all, err)
	}
}

func TestCheckPathOfModels(t *testing.T) {
	for path, text := range map[string]string{
		"/r/model/debug/echo.d/id":      "debug/echo\n",
		"/r/model/debug/echo.d/limit":   "unknown\n",
		"/r/model/o/gpt-5.1.d/fallback": "debug/echo\n",
	} {
		if err := CheckPath(path, []byte(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, text := range map[string]string{
		"/r/model/debug/echo.d/id":     "debug/tools\n", // not its place
		"/r/model/debug/echo.d/window": "auto\n",
		"/r/model/echo.d/limit":        "unknown\n",
		"/r/model/-x/echo.d/limit":     "unknown\n",
		"/r/model/debug/echo/limit":    "unknown\n",
		"/r/model/debug/echo.d/limit":  "unknown",
	} {
		if err := CheckPath(path, []byte(text)); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

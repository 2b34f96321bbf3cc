package log

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
)

func TestEntry(t *testing.T) {
	common := []zapcore.Field{field("agent", "coder")}
	own := []zapcore.Field{field("session", "default"), field("why", "a \"b\"\n"), field("late", 3), field("idle", true), field("exit-code", uint8(2)), field("none", "")}
	text, vars := render("stopped accepting", common, own)
	if want := `stopped accepting session=default why="a \"b\"\n" late=3 idle=true exit-code=2 none=""`; text != want {
		t.Errorf("%s\nnot\n%s", text, want)
	}
	want := map[string]string{
		"CORTEXFS_AGENT": "coder", "CORTEXFS_SESSION": "default", "CORTEXFS_WHY": "a \"b\"\n",
		"CORTEXFS_LATE": "3", "CORTEXFS_IDLE": "true", "CORTEXFS_EXIT_CODE": "2", "CORTEXFS_NONE": "",
	}
	if diff := cmp.Diff(want, vars); diff != "" {
		t.Error(diff)
	}
}

func TestFieldsOfSiblings(t *testing.T) {
	base := (&entries{lines: zapcore.NewNopCore()}).With([]zapcore.Field{field("agent", "a")})
	one := base.With([]zapcore.Field{field("session", "one")}).(*entries)
	two := base.With([]zapcore.Field{field("session", "two")}).(*entries)
	if one.fields[1].String != "one" || two.fields[1].String != "two" || len(one.fields) != 2 {
		t.Errorf("%v, %v", one.fields, two.fields)
	}
}

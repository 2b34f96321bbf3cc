package log

import (
	"io"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap/zapcore"
)

// fieldPrefix begins the names of our fields in the journal:
// journalctl CORTEXFS_AGENT=coder CORTEXFS_SESSION=default.
const fieldPrefix = "CORTEXFS_"

// NewJournal is New for a program whose standard error, w, is the journal: what
// is a member of a line there is a field of an entry, so that entries are found
// by agent, session and run. Where the journal does not take an entry, its line
// goes to w.
func NewJournal(w io.Writer, level string) (*Logger, error) {
	lines, err := New(w, level)
	if err != nil {
		return nil, err
	}
	return &Logger{&entries{lines: lines.core}}, nil
}

// entries is a core that writes to the journal.
type entries struct {
	lines  zapcore.Core // where what can not be written goes
	fields []zapcore.Field
}

func (e *entries) Enabled(l zapcore.Level) bool { return e.lines.Enabled(l) }

func (e *entries) With(fields []zapcore.Field) zapcore.Core {
	return &entries{e.lines.With(fields), append(e.fields[:len(e.fields):len(e.fields)], fields...)}
}

func (e *entries) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Enabled(entry.Level) {
		return to.AddCore(entry, e)
	}
	return to
}

func (e *entries) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	text, vars := render(entry.Message, e.fields, fields)
	if err := journal.Send(text, priority(entry.Level), vars); err != nil {
		return e.lines.Write(entry, fields)
	}
	return nil
}

func (e *entries) Sync() error { return nil }

// render makes the text of an entry, for those who look at texts alone, and its
// fields. In the text is what the entry says more than its neighbours.
func render(message string, common, own []zapcore.Field) (string, map[string]string) {
	var text strings.Builder
	text.WriteString(message)
	vars := make(map[string]string, len(common)+len(own))
	for i, f := range append(common[:len(common):len(common)], own...) {
		value := f.String
		switch f.Type {
		case zapcore.BoolType:
			value = strconv.FormatBool(f.Integer != 0)
		case zapcore.Int64Type:
			value = strconv.FormatInt(f.Integer, 10)
		case zapcore.Uint64Type:
			value = strconv.FormatUint(uint64(f.Integer), 10)
		}
		vars[fieldName(f.Key)] = value
		if i >= len(common) {
			text.WriteString(" " + f.Key + "=" + quoted(value))
		}
	}
	return text.String(), vars
}

// quoted is a value as one word.
func quoted(value string) string {
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
		return strconv.Quote(value)
	}
	return value
}

// fieldName is the name of a member as the journal takes it: capitals, digits and
// underscores.
func fieldName(key string) string {
	return fieldPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
}

func priority(l zapcore.Level) journal.Priority {
	switch {
	case l <= zapcore.DebugLevel:
		return journal.PriDebug
	case l == zapcore.InfoLevel:
		return journal.PriInfo
	case l == zapcore.WarnLevel:
		return journal.PriWarning
	}
	return journal.PriErr
}

// Package log writes the log of a program: one JSON object a line, with the
// time, the level, the message, and fields such as agent, session and run.
// Nothing of it is part of an interface, and no secret, prompt or tool output
// belongs in it. It stands on zapcore alone, because zap brings an HTTP server.
package log

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"go.uber.org/zap/zapcore"
)

// Logger writes lines. Its methods may be called from any goroutine; a failed
// write is dropped, since nobody is left to tell.
type Logger struct{ core zapcore.Core }

// New logs to w the lines of a level (debug, info, warn, error) and above. The
// caller closes w, after the last line. An unknown level is errdefs.Invalid.
func New(w io.Writer, level string) (*Logger, error) {
	levels := map[string]zapcore.Level{
		"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel,
		"warn": zapcore.WarnLevel, "error": zapcore.ErrorLevel,
	}
	min, ok := levels[level]
	if !ok {
		return nil, errdefs.New(errdefs.Invalid, "log level %q: is not debug, info, warn or error", level)
	}
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", MessageKey: "msg",
		LineEnding:  "\n",
		EncodeLevel: zapcore.LowercaseLevelEncoder,
		EncodeTime: func(t time.Time, to zapcore.PrimitiveArrayEncoder) {
			to.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
		},
		EncodeDuration: zapcore.StringDurationEncoder,
	})
	return &Logger{zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), min)}, nil
}

// Discard is a logger that writes nothing.
func Discard() *Logger { return &Logger{zapcore.NewNopCore()} }

// With is a logger whose lines all carry this field too.
func (l *Logger) With(key string, value any) *Logger {
	return &Logger{l.core.With([]zapcore.Field{field(key, value)})}
}

// Debug writes a line of level debug; kv is field names, each followed by its
// value.
func (l *Logger) Debug(msg string, kv ...any) { l.write(zapcore.DebugLevel, msg, kv) }

// Info writes a line of level info; kv as for Debug.
func (l *Logger) Info(msg string, kv ...any) { l.write(zapcore.InfoLevel, msg, kv) }

// Warn writes a line of level warn; kv as for Debug.
func (l *Logger) Warn(msg string, kv ...any) { l.write(zapcore.WarnLevel, msg, kv) }

// Error writes a line of level error; kv as for Debug.
func (l *Logger) Error(msg string, kv ...any) { l.write(zapcore.ErrorLevel, msg, kv) }

func (l *Logger) write(level zapcore.Level, msg string, kv []any) {
	entry := l.core.Check(zapcore.Entry{Level: level, Time: time.Now(), Message: clip(msg)}, nil)
	if entry == nil {
		return
	}
	fields := make([]zapcore.Field, 0, len(kv)/2+1)
	for len(kv) >= 2 {
		fields = append(fields, field(fmt.Sprint(kv[0]), kv[1]))
		kv = kv[2:]
	}
	if len(kv) == 1 {
		fields = append(fields, field("extra", kv[0])) // a name without a value, or the reverse
	}
	entry.Write(fields...)
}

// field keeps numbers and truth values as they are; all else becomes text, so
// that no type can put an object of its own, or a failure, into the log.
func field(key string, value any) zapcore.Field {
	text := func(s string) zapcore.Field {
		return zapcore.Field{Key: key, Type: zapcore.StringType, String: clip(s)}
	}
	switch v := value.(type) {
	case nil:
		return text("")
	case time.Duration:
		return text(v.String())
	case error, fmt.Stringer:
		return text(fmt.Sprint(v)) // Sprint survives a nil pointer inside
	case []byte:
		return text(string(v))
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Bool:
		n := int64(0)
		if v.Bool() {
			n = 1
		}
		return zapcore.Field{Key: key, Type: zapcore.BoolType, Integer: n}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return zapcore.Field{Key: key, Type: zapcore.Int64Type, Integer: v.Int()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return zapcore.Field{Key: key, Type: zapcore.Uint64Type, Integer: int64(v.Uint())}
	case reflect.String:
		return text(v.String())
	}
	return text(fmt.Sprint(value))
}

// clip bounds one text of a line.
func clip(s string) string {
	if len(s) <= libctx.MaxLogText {
		return s
	}
	return strings.ToValidUTF8(s[:libctx.MaxLogText], "") + "…"
}

package failure

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Report is what a provider says of a failure, in its own words.
type Report struct {
	Code    string // a word or a number
	Type    string
	Message string
}

// word is the provider's own word for the failure.
func (r Report) word() string {
	if r.Code != "" {
		return r.Code
	}
	return r.Type
}

// Parse reads a provider's report of a failure in any of the usual forms:
//
//	{"error":{"message":…,"type":…,"code":…,"status":…}}
//	{"error":"…"}   {"message":…,"type":…,"code":…}   {"detail":"…"}
//
// What is no JSON object is taken as the message.
func Parse(body []byte) Report {
	var outer struct {
		Error  jsontext.Value `json:"error"`
		Detail jsontext.Value `json:"detail"`
	}
	if !decode(body, &outer) {
		return Report{Message: strings.TrimSpace(wire.Clean(body))}
	}
	for _, v := range []jsontext.Value{outer.Error, body} {
		var e struct {
			Code    jsontext.Value `json:"code"`
			Type    jsontext.Value `json:"type"`
			Status  jsontext.Value `json:"status"`
			Message jsontext.Value `json:"message"`
		}
		if !decode(v, &e) {
			if s := scalar(v); s != "" {
				return Report{Message: s}
			}
			continue
		}
		r := Report{Code: scalar(e.Code), Type: scalar(e.Type), Message: scalar(e.Message)}
		if s := scalar(e.Status); s != "" && (r.Type == "" || isNumber(r.Code)) {
			r.Type = s // Google's word, beside a number
		}
		if r != (Report{}) {
			if r.Message == "" {
				r.Message = scalar(outer.Detail)
			}
			return r
		}
	}
	if s := scalar(outer.Detail); s != "" {
		return Report{Message: s}
	}
	return Report{Message: strings.TrimSpace(wire.Clean(body))}
}

// lenient: a report with a name twice, or cut characters, is still one.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func decode(text []byte, v any) bool {
	return jsontext.Value(text).Kind() == '{' && json.Unmarshal(text, v, lenient) == nil
}

// scalar is the text of a string or a number, "" of anything else.
func scalar(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		var s string
		if json.Unmarshal(v, &s, lenient) == nil {
			return s
		}
	case '0':
		return strings.TrimSpace(string(v))
	}
	return ""
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

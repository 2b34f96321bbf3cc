// Package checker reads the files of sessions and says what in them can not be
// true. It is independent of the suite on purpose: it knows the format from
// docs/reference/session.md, reads it with encoding/json, and shares no code
// with the package that writes it.
package checker

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
)

// Rules by which a problem is found; the key of Problem.Rule.
const (
	Lines      = "lines"      // whole lines, one object each, strict
	Seq        = "seq"        // from 1, without gaps
	First      = "first"      // one session record, at the start, of this session
	Tree       = "tree"       // entries: ids without gaps, parents and heads exist
	Starts     = "starts"     // one start a run, its message in front of it
	Ends       = "ends"       // one checkpoint a run, nothing behind it
	Driven     = "driven"     // one driven run at a time
	Clients    = "clients"    // a client id starts one run
	Inputs     = "inputs"     // what was accepted into a run is a message once, before its end
	Pairs      = "pairs"      // every call has one result, behind it; in its own run, or in the next if it was carried on
	Decisions  = "decisions"  // a call is decided once, before its result
	Approvals  = "approvals"  // a person is asked once, before the decision, which is theirs
	Events     = "events"     // events.jsonl is the fold of the ledger
	Told       = "told"       // what a client was told is recorded, and identical
	Sent       = "sent"       // what is recorded was sent, once, and is what was sent
	Executions = "executions" // no call ran twice, or without its record, or not though it says so
)

// Problem is one thing that can not be.
type Problem struct {
	Where string // file, and line where there is one
	Rule  string
	Text  string
}

func (p Problem) String() string { return p.Where + ": " + p.Rule + ": " + p.Text }

// Options say what there is to check.
type Options struct {
	Dirs  []string // session directories, or directories with sessions somewhere below
	Told  []string // what clients wrote down, see Note
	Marks string   // the file the tool "mark" appends to, "" if there is none
	Open  bool     // runs may be going on: they need no end yet, and events may be missing at the end
}

// Report is what was looked at and what was found.
type Report struct {
	Sessions, Records, Runs, Calls, Events int
	Inputs                                 int // messages said into a run that went on
	Interrupted                            int // runs that a dead host left
	Unstarted                              int // messages whose batch a dead host did not write whole; nobody was told of them
	Acknowledged, Frames                   int // what clients were told: start frames and all frames, without repetitions
	Marks                                  int // executions that left a mark
	Problems                               []Problem
	left                                   int // problems not listed
}

// maxProblems bounds a report; one broken rule usually breaks many lines.
const maxProblems = 200

func (r *Report) add(where, rule, format string, args ...any) {
	if len(r.Problems) >= maxProblems {
		r.left++
		return
	}
	r.Problems = append(r.Problems, Problem{where, rule, fmt.Sprintf(format, args...)})
}

func (r *Report) String() string {
	s := fmt.Sprintf("%d sessions, %d records, %d runs (%d interrupted, %d never started), %d calls, %d inputs, %d events; clients were told %d frames, %d messages acknowledged; %d marks; ",
		r.Sessions, r.Records, r.Runs, r.Interrupted, r.Unstarted, r.Calls, r.Inputs, r.Events, r.Frames, r.Acknowledged, r.Marks)
	if n := len(r.Problems) + r.left; n > 0 {
		return s + fmt.Sprintf("%d problems", n)
	}
	return s + "no problem"
}

// Check reads everything the options name. The error is about the files that
// could not be read at all; what is wrong in them is in the report.
func Check(o Options) (*Report, error) {
	r := &Report{}
	var dirs []string
	for _, dir := range o.Dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "messages.jsonl" {
				dirs = append(dirs, filepath.Dir(path))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no messages.jsonl in %v", o.Dirs)
	}
	sort.Strings(dirs)
	notes, err := readNotes(o.Told)
	if err != nil {
		return nil, err
	}
	marks, err := readMarks(o.Marks, r)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		s := &one{dir: dir, report: r, open: o.Open}
		if err := s.read(); err != nil {
			return nil, err
		}
		if err := s.compare(); err != nil {
			return nil, err
		}
		notes.check(s)
		if o.Marks != "" {
			marks.check(s)
		}
		r.Sessions++
	}
	notes.rest(r)
	marks.rest(r)
	return r, nil
}

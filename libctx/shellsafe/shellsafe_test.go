package shellsafe

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

var safe = []string{
	"true", "ls", "ls -la src", "cat README.md | head -n 3", "cd src && ls || echo none; pwd", `grep -n "a b" 'c $d' e=f`,
	"rg -n TODO src", "find . -name '*.go' -type f", "sed -n 1,20p main.go", "sed -n 5p", "true",
	`bash -c 'ls && pwd'`, `sh -c "cat a"`, `bash -c -- ls`, `bash -c 'sh -c "ls"'`, "uniq", "uniq -c a", "base64 -d a", "wc -l a b;",
	"echo a+b 50% @x a#b HEAD^ --color=never", "echo ä", "stat -c %n a", "  ls\t-l  ", "true;",
}

var unsafe = []string{
	"", " ", ";", "rm a", "ls > a", "ls >> a", "ls < a", "ls 2>&1", "ls &", "ls & ls", "! ls", "(ls)", "{ ls; }", "ls; rm a", "ls && rm a", "ls || rm a", "ls | sh",
	"ls |& cat", "$(ls)", "`ls`", "echo $(rm a)", "echo `rm a`", "echo $HOME", "echo ${A}", `echo "$A"`, `echo "$(rm a)"`, "echo \"`rm a`\"", "A=1 ls", "A=1",
	"cat <(ls)", "ls *", "ls ?", "ls [a]", "ls {a,b}", "ls ~", "ls ~root", "echo $'a'", `echo $"a"`, `l\s`, `echo "a\"b"`, "echo a\\ b", "=ls",
	"ls\nrm a", "ls\n", "ls\r", "ls\x00", "ls \u202e", "ls\u00a0a", "ls\x1b[1m", "ls \xff", "ls # rm", "ls 'a", `ls "a`, "if true; then ls; fi", "while true; do ls; done", "for a in b; do ls; done",
	"f() { ls; }; f", "[[ -f a ]]", "[ -f a ]", "((1))", "let a=1", "export A=1", "declare a", "time ls", "coproc ls", "eval ls", "exec ls", "source a", ". a", "command ls",
	"/bin/ls", "./ls", "LS", "env ls", "sudo ls", "xargs ls", "nohup ls", "awk 1", "perl -e 1", "python3", "git status", "git -c core.fsmonitor=x status",
	"find . -delete", "find . -exec rm {} +", "find . -execdir rm x", "find . -ok rm x", "find . -okdir rm x", "find . -fprint a", "find . -fprint0 a", "find . -fprintf a b", "find . -fls a", "find . '-delete'", `find . -del"ete"`,
	"rg --pre cat a", "rg --pre=cat a", "rg --hostname-bin=x a", "rg -z a", "rg -iz a", "rg --search-zip a",
	"sed 1p", "sed -n 1w", "sed -n '1w a'", "sed -n 1,2p a b", "sed -n 1p -i", "sed -n 1p --in-place", "sed -i -n 1p", "sed -n '1p;1w a'", "sed -n 1e",
	"uniq a b", "uniq - b", "uniq -- b c", "uniq -f 1 a", "base64 -o a b", "base64 --output=a b", "sort -o a b", "tee a",
	"bash", "bash a", "bash -lc ls", "bash -l -c ls", "bash -c", "bash -c ls x", "bash -x -c ls", "bash --rcfile a -c ls", "zsh -c ls", "sh a", "bash -c 'rm a'", `bash -c "sh -c 'rm a'"`, "bash -c '$0'", "bash -c -i ls",
	"echo <<a", "echo a >&2", "ls;;", "ls a(b)", "ls !(a)", "ls @(a)", "echo a &>b", "echo a >|b", "cat <<<a", "a[1]=2", "echo !!",
}

func TestScript(t *testing.T) {
	for _, s := range safe {
		if !Script(s) {
			t.Errorf("not known to be safe: %q", s)
		}
	}
	for _, s := range unsafe {
		if Script(s) {
			t.Errorf("safe: %q", s)
		}
	}
}

func TestBounds(t *testing.T) {
	if s := "echo " + strings.Repeat("a", libctx.MaxSafeScript); Script(s) || !Script(s[:libctx.MaxSafeScript]) {
		t.Error("the bound is not the bound")
	}
	for _, open := range []string{"(", "$(", "{ ", "`", "\"$(", "((", "[[ (", "! ", "bash -c '", "if ", "a[", "${a"} {
		if Script(strings.Repeat(open, libctx.MaxSafeScript/len(open))) {
			t.Errorf("many %q are safe", open)
		}
	}
	for depth, want := range map[int]bool{0: true, maxDepth: true, maxDepth + 1: false} {
		if script("ls", depth) != want {
			t.Errorf("%d shells deep: %v", depth, !want)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  bool
	}{
		{nil, false},
		{[]string{"cat", "a; rm b", "$(x)", "\n"}, true}, // nothing is expanded
		{[]string{"cat", "a\x00"}, false},
		{[]string{"bash", "-c", "ls"}, true},
		{[]string{"bash", "-c", "ls", "x"}, false},
		{[]string{"find", ".", "-delete"}, false},
		{[]string{"rm"}, false},
	} {
		if got := Words(c.words); got != c.want {
			t.Errorf("%q: %v", c.words, got)
		}
	}
}

// TestNothingSafeGrows: what is put behind a safe script to make it do more is
// seen.
func TestNothingSafeGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(safe).Draw(t, "safe")
		s = strings.TrimRight(s, "; ")
		s += rapid.SampledFrom([]string{"; rm a", " && rm a", "|tee a", " >a", " $(rm a)", " `rm a`", " <(rm a)", " & rm a", "\nrm a", " ;\trm a"}).Draw(t, "more")
		if Script(s) {
			t.Fatalf("safe: %q", s)
		}
	})
}

// FuzzScript: no text makes it panic, and what it calls safe has nothing in it that
// shells expand or write to.
func FuzzScript(f *testing.F) {
	for _, s := range append(append([]string{}, safe...), unsafe...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !Script(s) {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(s), "")
		if err != nil {
			t.Fatalf("safe and no script: %q", s)
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			switch n.(type) {
			case nil, *syntax.File, *syntax.Stmt, *syntax.CallExpr, *syntax.BinaryCmd, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
			default:
				t.Fatalf("safe with a %T: %q", n, s)
			}
			return true
		})
	})
}

package chat

import (
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Command is a line that is for the chat and not for the agent.
type Command struct{ Name, Argument string }

// commands are those there are, with their arguments and what they do.
var commands = []struct{ name, argument, what string }{
	{"help", "", "this list"},
	{"tools", "", "the tools of the agent and what admission says"},
	{"usage", "", "what the session used, and what that cost"},
	{"session", "[NAME]", "the sessions, or go on in another one"},
	{"model", "[MODEL]", "the model, or another one from the next run on"},
	{"history", "", "the conversation so far"},
	{"show", "[N]", "the result of tool call N, or of the last one"},
	{"edit", "[TEXT]", "write the message in $EDITOR, also Ctrl+G"},
	{"steer", "TEXT", "say it before the model is asked the next time, also Alt+Enter"},
	{"finish", "[TEXT]", "let the run end without more tools"},
	{"cancel", "", "cancel the run, also Ctrl+C"},
	{"quit", "", "leave, also Ctrl+D"},
}

// Names lists the commands with their slash, for completion.
func Names() []string {
	var names []string
	for _, c := range commands {
		names = append(names, "/"+c.name)
	}
	return names
}

// words completes commands at the beginning of a line; all else is names of files.
func words(before, word string) (commands []string, files bool) {
	if before != "" || !strings.HasPrefix(word, "/") {
		return nil, true
	}
	return Names(), true
}

// Parse tells a command from a message. A command begins with a slash and
// lower-case letters; a message that does too is written with a second slash,
// which text leaves out. A command that does not exist is errdefs.Invalid.
func Parse(line string) (c *Command, text string, err error) {
	rest, slash := strings.CutPrefix(line, "/")
	if !slash {
		return nil, line, nil
	}
	if strings.HasPrefix(rest, "/") {
		return nil, rest, nil
	}
	name, argument := rest, ""
	if i := strings.IndexAny(rest, " \t\n"); i >= 0 {
		name, argument = rest[:i], strings.TrimSpace(rest[i:])
	}
	if strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz") != "" || name == "" {
		return nil, line, nil // a path, say
	}
	for _, k := range commands {
		if k.name != name {
			continue
		}
		if k.argument == "" && argument != "" {
			return nil, "", errdefs.New(errdefs.Invalid, "/%s takes no words", name)
		}
		return &Command{name, argument}, "", nil
	}
	return nil, "", errdefs.New(errdefs.Invalid, "there is no /%s; /help lists the commands, and //%s sends it as it stands", name, name)
}

// help is the answer to /help; the columns of what a command does line up.
func help(keys bool) string {
	var b strings.Builder
	for _, c := range commands {
		head := "/" + c.name
		if c.argument != "" {
			head += " " + c.argument
		}
		b.WriteString(head + strings.Repeat(" ", max(1, 18-len(head))) + c.what + "\n")
	}
	b.WriteString("\\ at the end of a line goes on in the next one; //word sends /word.\n")
	if keys {
		b.WriteString("While a run is active, Enter says what comes after it, Alt+Enter says it at once.\n")
	}
	return b.String()
}

#!/usr/bin/env python3
"""linecount: a complete executable agent in one file, without dependencies.

It lists the workspace, reads one file and says how many entries and how many
lines it found. Copy it to begin an agent of your own; linecount/ is the same
agent in Go.

The host starts the program once for each step: one JSON object on standard
input, one JSON object a line on standard output, exit status 0. It keeps
nothing of the process in between, so what a later step needs goes into a file
in the agent's home.
"""

import json
import os
import re
import sys

SCHEMA = "cortexfs.agent-invocation/v1"
MAX_INVOCATION = 1 << 20  # bytes
WORKSPACE = "/workspace"
MAX_SHOWN = 200  # entries to list; the listing says how many there are in all
MAX_TRIES = 7  # files to try: a run has eight calls, one of them lists


def read_invocation():
    """Read the invocation and check that it belongs to this start."""
    body = sys.stdin.buffer.read(MAX_INVOCATION + 1)
    if len(body) > MAX_INVOCATION:
        raise ValueError("the invocation is too long")
    invocation = json.loads(body)
    if invocation["schema"] != SCHEMA:
        raise ValueError("another schema: %r" % invocation["schema"])
    if invocation["run"] != os.environ.get("CTX_RUN_ID"):
        raise ValueError("the invocation is of another run")
    if str(invocation["step"]) != os.environ.get("CTX_STEP"):
        raise ValueError("the invocation is of another step")
    return invocation


def emit(invocation, kind, **members):
    """Write one frame. After a tool_call nothing may follow: return."""
    frame = {"type": kind, "run": invocation["run"], **members}
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def say(invocation, text):
    emit(invocation, "message", role="assistant", content=[{"type": "text", "text": text}])


def call(invocation, call_id, tool, **arguments):
    emit(invocation, "tool_call", id=call_id, name=tool, arguments=arguments)


def agent(invocation):
    """Do one step: step 0 asks for the listing, the others look at what the
    call before them brought."""
    observation = invocation["observation"]
    if observation is None:
        call(invocation, "list", "fs.list", path=WORKSPACE, limit=MAX_SHOWN)
    elif observation["name"] == "fs.list":
        listed(invocation, observation)
    else:
        read(invocation, observation)


def listed(invocation, observation):
    """Choose the files to try from the listing and ask for the first."""
    if observation["status"] != "ok":
        say(invocation, "I could not list %s: %s" % (WORKSPACE, first_line(observation["content"])))
        return
    entries, files = parse_listing(observation["content"])
    least = "at least " if observation["truncated"] else ""
    found = "%s has %s%s" % (WORKSPACE, least, count(entries, "entry", "entries"))
    if not files:
        say(invocation, found + " and no regular file.")
        return
    ask(invocation, found, files)


def read(invocation, observation):
    """Say what was found, or try the next file if this one was refused."""
    found, files = recall(invocation)
    if observation["status"] == "ok":
        lines = count_lines(observation["content"])
        if lines is None:
            say(invocation, "%s; I could not tell the lines of %s." % (found, files[0]))
        else:
            say(invocation, "%s; %s has %s." % (found, files[0], count(lines, "line", "lines")))
    elif len(files) == 1:
        say(invocation, "%s; no file could be read, the last was %s: %s"
            % (found, files[0], first_line(observation["content"])))
    else:
        ask(invocation, found, files[1:])


def ask(invocation, found, files):
    """Write the notes and read the first of their files."""
    remember(invocation, found, files)
    call(invocation, "read-%d" % invocation["step"], "fs.read", path=files[0], numbers=True)


def parse_listing(text):
    """Count the entries of an fs.list result and pick files to try: the README
    first, then regular files in the order of the listing."""
    entries, files = 0, []
    for line in text.split("\n"):
        noted = re.match(r"\[\d+ of (\d+) entries", line)
        if noted:
            entries = int(noted[1])
            continue
        fields = line.split("\t")  # kind, mode, size, time, path
        if len(fields) != 5:
            continue
        entries += 1
        if fields[0] == "file":
            files.insert(0 if fields[4] == WORKSPACE + "/README.md" else len(files), fields[4])
    return entries, files[:MAX_TRIES]


def count_lines(text):
    """Find the number of lines in an fs.read result with numbers: the number of
    its last line, or the total in the note below a shortened one."""
    last = text.rstrip("\n").split("\n")[-1]
    if last == "[empty file]":
        return 0
    match = re.match(r" *(\d+)\t", last) or re.match(r"\[lines? \S+ of (\d+)", last)
    return int(match[1]) if match else None


def first_line(text):
    return text.strip().split("\n")[0]


def count(n, one, many):
    return "%d %s" % (n, one if n == 1 else many)


def notes_file():
    """One file for each session: a session has one run at a time."""
    cache = os.path.join(os.environ["HOME"], ".cache", "linecount")
    os.makedirs(cache, mode=0o700, exist_ok=True)
    return os.path.join(cache, os.environ.get("CTX_SESSION") or "default")


def remember(invocation, found, files):
    """Replace the notes. Their first line is the run, so that notes of an
    earlier run are never taken for this one's."""
    with open(notes_file(), "w", encoding="utf-8") as notes:
        notes.write("\n".join([invocation["run"], found, *files]))


def recall(invocation):
    with open(notes_file(), encoding="utf-8") as notes:
        run, found, *files = notes.read().split("\n")
    if run != invocation["run"] or not files:
        raise ValueError("the notes of this run are gone")
    return found, files


if __name__ == "__main__":
    try:
        agent(read_invocation())
    except (ValueError, KeyError, TypeError, OSError) as problem:
        sys.exit("linecount.py: %s" % problem)

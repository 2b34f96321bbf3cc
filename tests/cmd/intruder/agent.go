package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// agent is one step of an executable agent.
func agent() {
	body, err := io.ReadAll(os.Stdin)
	var inv struct {
		Run, Input string
		Step       int
	}
	if err == nil {
		err = json.Unmarshal(body, &inv)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "intruder:", err)
		os.Exit(70)
	}
	var script strings.Builder
	steps := strings.Split("\n"+inv.Input+"\n", "\n--\n")
	for line := range strings.Lines(steps[min(inv.Step, len(steps)-1)]) {
		if frame, ok := strings.CutPrefix(line, "frame "); ok {
			fmt.Println(strings.ReplaceAll(strings.TrimSpace(frame), "RUN", inv.Run))
			continue
		}
		script.WriteString(line)
	}
	if strings.TrimSpace(script.String()) == "" {
		return
	}
	cmd := exec.Command("/bin/sh", "-c", script.String())
	cmd.Dir = "/workspace"
	out, _ := cmd.CombinedOutput()
	b, _ := json.Marshal(map[string]any{"type": "message", "run": inv.Run, "role": "assistant",
		"content": []any{map[string]any{"type": "text", "text": strings.ToValidUTF8(string(out), "?") + "\n"}}})
	os.Stdout.Write(append(b, '\n'))
}

package anthropic

import (
	"regexp"
	"strconv"

	"cortexfs.org/libctx/modelwire"
	"github.com/anthropics/anthropic-sdk-go"
)

// think says how hard the model thinks. Models that decide themselves how long
// are told the effort, the others the tokens. An option thinking says it
// instead, and leaves only the effort to say.
func think(c *anthropic.MessageNewParams, g *modelwire.Generate, id string, budget int64) {
	major, minor := versionOf(id)
	adapts := major > 4 || major == 4 && minor >= 6
	_, own := g.Options["thinking"]
	switch {
	case own || adapts:
		if _, own := g.Options["output_config"]; !own {
			c.OutputConfig.Effort = anthropic.OutputConfigEffort(g.Effort)
			if g.Effort == "xhigh" && major == 4 && minor <= 6 {
				c.OutputConfig.Effort = anthropic.OutputConfigEffortHigh // they know no more
			}
		}
		if !own {
			c.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{}
		}
	case budget >= minBudget && canThink(g):
		c.Thinking = anthropic.ThinkingConfigParamOfEnabled(budget)
	}
}

// named are the ids of Anthropic's models from version 4 on. Eight digits are a
// date.
var named = regexp.MustCompile(`^(?:.*[/.])?claude-[a-z]+-([0-9]{1,2})(?:-([0-9]{1,2}))?(?:$|[^0-9])`)

// versionOf is the version in the id of a model, 0 if there is none.
func versionOf(id string) (major, minor int) {
	if m := named.FindStringSubmatch(id); m != nil {
		// Digits by the pattern; none at all are 0.
		major, _ = strconv.Atoi(m[1])
		minor, _ = strconv.Atoi(m[2])
	}
	return major, minor
}

// canThink reports whether thinking may be asked for: not in the middle of a turn
// whose calls came without it, from another model or without effort.
func canThink(g *modelwire.Generate) bool {
	for i := len(g.Messages) - 1; i >= 0; i-- {
		switch m := &g.Messages[i]; m.Role {
		case "assistant":
			return m.Opaque.For(g.Model) != nil
		case "tool":
		default:
			return true
		}
	}
	return true
}

// Package view reads what an agent is and may use from the tree, afresh for
// every run and every call: the agent's control files with the identity that
// may be believed (Load), the file behind a tool's name (Lookup), and the
// read-only /ctx directory its sandboxes see (Prepare).
//
// Trust follows ownership, as it does in sshd. Every component below the root
// of the tree is opened following no link; what belongs to a stranger, or can
// be written by others than its owner, is refused by name. Files of users are
// read with the rights of the agent's identity. Deciding is not done here: the
// facts go to package admit.
package view

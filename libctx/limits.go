package libctx

import "time"

// Every bound of the system has its home in this file. Names say what is
// bounded, comments say the unit and where the number comes from
// (docs/reference/limits.md retells the list for readers).

// Frames and requests on Unix sockets.
const (
	MaxFrame        = 1 << 20  // bytes of one line on an agent socket, LF included
	MaxInlineText   = 64 << 10 // bytes of a text, content or arguments member on the wire; longer ones go out as head and tail
	MaxArgs         = 64       // words of a tsh request or of a command-line form
	MaxArg          = 4096     // bytes of one such word on the agent socket
	MaxAgentArgs    = 8 << 10  // bytes of all words an executable agent may give one call
	MaxConnections  = 128      // connections of one agent socket at a time
	MaxFarewells    = 128      // more of them that are told there are too many, and given time to read that
	MaxStreams      = 256      // runs and replays one connection gets frames of at a time
	MaxOutboxBytes  = 4 << 20  // bytes waiting for one client before it lags
	MaxOutboxFrames = 4096     // frames waiting for one client before it lags
	MaxQueuedSends  = 64       // sends waiting for a busy session
	MaxRunInputs    = 64       // steer, follow_up and finish inputs that wait in one run
	MaxRunInput     = 64 << 20 // bytes of them
	MaxSessionTsh   = 4        // tsh operations of one session at a time
	MaxQueuedTsh    = 64       // tsh operations of one session waiting for a slot
	MaxReceipt      = 16 << 10 // bytes of the receipt of a terminal
)

// Names.
const (
	MaxName      = 64 // bytes of an object name
	MaxAgentName = 62 // bytes of an agent name: its subject appends "_t"
)

// Files.
const (
	MaxControlFile   = 64 << 10  // bytes of one control file
	MaxRecord        = 32 << 20  // bytes of one ledger record, LF included
	MaxLedger        = 256 << 20 // bytes of one ledger
	MaxTempSession   = 32 << 20  // bytes of the records of a session in memory (scope temp)
	MaxLedgerRecords = 1_000_000 // records of one ledger
	// LedgerReserve and LedgerReserveRecords are kept back of the two limits
	// above, so that runs that are going on when a ledger is full can end.
	LedgerReserve        = 64 << 10  // bytes
	LedgerReserveRecords = 256       // records
	IndexEvery           = 1 << 20   // bytes of a ledger after which its index is written again
	MaxToolFile          = 256 << 20 // bytes of one tool or agent executable that is shown in a sandbox
	MaxFileRead          = 32 << 20  // bytes of a file that a file tool opens
	MaxListEntries       = 10_000    // entries one fs.list call returns
)

// The envelope of executable agents (docs/reference/envelope.md).
const (
	MaxEnvelope      = 1 << 20   // bytes of the invocation on stdin, LF included
	MaxContextText   = 64 << 10  // bytes of history_messages and of tool_context, each
	MaxObservation   = 16 << 10  // bytes of an observation's content
	MaxAgentFrame    = 256 << 10 // bytes of one frame an executable agent writes, LF included
	MaxAgentOutput   = 1 << 20   // bytes of standard output of one step
	MaxAgentStderr   = 64 << 10  // bytes of standard error kept of one step
	MaxAgentCalls    = 8         // tool calls of one run of an executable agent
	MaxAgentStarts   = 9         // process starts of one run of an executable agent
	AgentStepTimeout = 10 * time.Minute
	TermGrace        = 250 * time.Millisecond // from SIGTERM to the payload until the namespace is killed
)

// Tools.
const (
	MaxToolResult     = 50 << 10        // bytes of a result a model sees, unless result_bytes says otherwise
	MaxToolResultHard = 256 << 10       // bytes of a result, whatever result_bytes says
	MaxToolStderr     = 64 << 10        // bytes of standard error kept of a json-mode tool
	MaxToolOutput     = 1 << 20         // bytes of standard output of a json-mode tool
	MaxToolArguments  = 1 << 20         // bytes of the arguments a built-in tool reads
	MaxSafeScript     = 8 << 10         // bytes of a shell script that is looked at for whether it only looks
	MaxCallArguments  = 4 << 20         // bytes of the arguments of a call, from whomever it comes
	MaxGrants         = 256             // permissions of an agent that wait to be used
	GrantLife         = time.Minute     // from a permission until it is worth nothing
	ApprovalTimeout   = 5 * time.Minute // a person has to answer a question
	MaxToolScript     = 4 << 10         // bytes of the two-line file of a built-in tool
	MaxListDepth      = 64              // levels of directories one fs.list or fs.search call descends
	MaxLineShown      = 2000            // characters of one line that fs.read shows
	MaxSearchLine     = 300             // characters of one line that fs.search shows
	MaxSearchMatches  = 10_000          // matching lines one fs.search call shows
	MaxSearchContext  = 100             // lines around a match
	MaxSearchPattern  = 4 << 10         // bytes of a pattern
	MaxIgnoreFile     = 256 << 10       // bytes read of one file of ignore patterns
	MaxDiff           = 16 << 10        // bytes of the diff that a changing file tool shows
	MaxSpillFile      = 16 << 20        // bytes kept of one output that a result does not hold
	MaxSpillBytes     = 64 << 20        // bytes of all such files of one session
	MaxSpillAll       = 256 << 20       // bytes of all such files of one agent
	MaxSpillFiles     = 32              // such files of one session
	ToolTimeout       = 120 * time.Second
	ToolTimeoutGrace  = 2 * time.Second   // that a json-mode tool gets beyond its timeout, to answer with what it has
	ShellTimeout      = 110 * time.Second // of a command that shell.exec or bash runs where no host bounds it
	SearchTimeout     = 30 * time.Second  // of one fs.search call, which then shows what it found
	MaxToolTimeout    = time.Hour
	DrainAfterExit    = 500 * time.Millisecond // output of a tool is read this long after its process ended
)

// Loaded tools of a session (docs/reference/toolshell.md).
const (
	MaxLoadedSet    = 64 << 10 // bytes of the file of a session's loaded tools
	MaxLoadedAbout  = 4 << 10  // bytes kept of a loaded tool's description
	MaxLoadedSchema = 16 << 10 // bytes of a schema that is kept of a loaded tool
	MaxShellLine    = 1 << 20  // bytes of one line of the interactive tool shell
	MaxJobs         = 64       // jobs of one tool shell on a terminal
)

// Control files and the log.
const (
	MaxPath        = 4095    // bytes of one path, as the kernel has it
	MaxMounts      = 64      // lines of a mount table: each bind makes every launch slower
	MaxListLines   = 1024    // lines of a list in a control file
	MaxEnvValue    = 8 << 10 // bytes of one value of the env control
	MaxSchemaDepth = 64      // nesting of a tool's schema and of arguments checked against it
	MaxJSONValues  = 1 << 16 // values and member names of those
	MaxNumber      = 512     // digits, and exponent, of a number checked against a schema
	MaxLogText     = 4 << 10 // bytes of one text of a log line
)

// Hooks (docs/reference/hooks.md).
const (
	MaxHooks      = 16               // hooks in one directory
	MaxHookFile   = 16 << 20         // bytes of one hook
	MaxHookOutput = 64 << 10         // bytes that one hook may print
	MaxHookReason = 1 << 10          // bytes of what a hook printed that are told with its refusal
	HookTimeout   = 10 * time.Second // of one hook
	HooksTimeout  = 40 * time.Second // of all before a call, or all after it; shorter than GrantLife
)

// The capability socket of a run (docs/reference/control-socket.md).
const (
	MaxCapFrame       = 16 << 10               // bytes of one line on it, LF included
	MaxCapContent     = 8 << 10                // bytes of the text of an agent.update
	MaxCapID          = 128                    // bytes of a request id
	MaxCapRequests    = 64                     // request ids that one run uses
	MaxCapConnections = 16                     // connections of one run that are served at a time
	MaxAncestry       = 64                     // ancestors of a process that are looked at
	CapRequestWait    = 5 * time.Second        // from the connection until the request is there
	CapRespite        = 100 * time.Millisecond // without a new connection when there is no descriptor for one
	MaxCapRefusals    = 16                     // refusals of one run that are logged for people
)

// System mode (docs/reference/system.md).
const (
	MaxUserAgents       = 256              // agents that an ordinary user makes in the machine's tree
	MaxAdminConnections = 32               // connections of the admin socket at a time
	MaxAdminOfUser      = 4                // of them of one ordinary user
	AdminRequestWait    = 5 * time.Second  // from the connection until the request is there
	AdminProgramWait    = 30 * time.Second // for the next bytes of a program that is sent
	AdminUnitsWait      = time.Minute      // for systemd to do what a request needs
	AdminQuiet          = 2 * time.Second  // without a request before systemd reads units anew
)

// Models (docs/reference/control.md).
const (
	MaxFallbacks = 16 // models that are tried in place of one
)

// Sandboxes (docs/reference/sandbox.md).
const (
	SandboxProcesses = 1024             // processes and threads of one sandbox
	SandboxOpenFiles = 16384            // descriptors of one process
	SandboxFileBytes = 8 << 30          // bytes of one file that a process writes
	SandboxTmpBytes  = 512 << 20        // bytes of memory behind /tmp
	SandboxShmBytes  = 64 << 20         // bytes of memory behind /dev/shm
	SandboxRunBytes  = 16 << 20         // bytes of memory behind /run
	SandboxRootBytes = 16 << 20         // bytes of memory behind /, which ends read-only
	SandboxStart     = 30 * time.Second // from the start of bwrap until the payload runs
	MaxSandboxPipe   = 64 << 10         // bytes read of what bwrap and the entry step say
	// MaxSandboxRequest is more than the kernel lets a program be given by default.
	MaxSandboxRequest = 4 << 20          // bytes of the arguments and environment of one payload
	MaxSandboxPassed  = 8                // descriptors a payload gets besides the standard three
	SandboxSpare      = 30 * time.Second // that a prepared sandbox waits for its call
)

// Views of agents.
const (
	MaxToolDir   = 4096    // entries of one directory of tools, or of controls
	MaxViewBytes = 1 << 30 // bytes of the tools of one prepared view
)

// Terminals.
const (
	MaxTermSide       = 1000                   // columns, and rows, of a terminal
	MaxTermDrain      = 1 << 20                // bytes read from a terminal after its program ended
	MaxTermInput      = 64 << 10               // bytes of one input of a client, and of one output of an emitter
	MaxTermScrollback = 10_000                 // lines above the screen that a client can ask for
	MaxTermClients    = 256                    // clients of one terminal at a time
	MaxTermEvent      = 256 << 10              // bytes of one line of a terminal's event files, LF included
	TermEventFile     = 8 << 20                // bytes of the newest event file, after which it is rotated
	TermEventFiles    = 8                      // event files of one terminal, the newest included
	MaxTermHeld       = 64 << 10               // bytes of a program's unfinished sequence that are held while it is undecided
	MaxTermRecord     = 64 << 10               // bytes of output in one event
	MaxTermUnwritten  = 4 << 20                // bytes of output that wait for the disk before the program does
	TermHello         = 5 * time.Second        // from a client's connection until its first line is there
	MaxEmitQueue      = 64                     // frames of one run that wait to be shown in a terminal
	MaxEmitLines      = 20                     // lines shown of one result
	MaxEmitBytes      = 4 << 10                // bytes of them
	MaxEmitCommand    = 512                    // bytes shown of one command line
	EmitWait          = 10 * time.Second       // that a terminal may take to greet, and to take one output
	TermEventGather   = 20 * time.Millisecond  // that output waits for more, to be one event
	TermEventSync     = 500 * time.Millisecond // between two syncs of the event files
	TerminalStop      = 10 * time.Second       // that a terminal has to end, before it is killed
	TerminalGrace     = 8 * time.Second        // of that, for what runs in its sandbox
	TerminalStart     = 30 * time.Second       // from the start of a terminal's sandbox until its socket answers
	ManagerTimeout    = 10 * time.Second       // for an answer of a systemd manager

	MaxTermBacklog = 4 << 20                // bytes of frames that wait for a client of a terminal before it lags
	MaxTermPending = 4 << 20                // bytes of output the screen of a terminal is behind, at most
	MaxTermTyped   = 256 << 10              // bytes typed into a terminal that wait for its program
	MaxTermEmitted = 64 << 10               // bytes of emitters that wait until a terminal can show them
	MaxTermLine    = 64 << 10               // bytes of a client's first line, and of a line of one that may not type
	TermLazy       = 100 * time.Millisecond // that output waits for the screen while nobody looks at that
	TermRedraw     = 33 * time.Millisecond  // between two screens for a client of another size than the terminal
	TermHangup     = 500 * time.Millisecond // from SIGHUP to a terminal's program until SIGTERM, and until SIGKILL
	TermFarewell   = 2 * time.Second        // that a client has to take each part of what is left when the program has ended
	TermRespite    = 250 * time.Millisecond // without a new client when there is no descriptor for one
	TermFarewells  = 6 * time.Second        // and all of it
)

// The screen of a terminal that nobody may be looking at.
const (
	MaxTermScrollbackBytes = 4 << 20  // bytes kept of lines above the screen
	MaxTermUnread          = 32 << 20 // bytes of screens no client has read yet, over which new ones come without such lines
	MaxTermString          = 4 << 10  // bytes of a string in a sequence of a program; a longer one is ignored
	MaxTermTitle           = 1 << 10  // bytes of a title
	MaxTermLinks           = 1024     // links on the screen
	MaxTermLink            = 2 << 10  // bytes of the address of one of them
	MaxTermMarks           = 32       // bytes of what combines with one character
	MaxTermRepeat          = 4096     // characters one sequence repeats
)

// Runs of model agents (docs/reference/run.md).
const (
	MaxTurns     = 256 // requests to a model in one run
	MaxDeafTurns = 2   // answers in a row that call, to requests without tools
	MaxTurnCalls = 32  // tool calls of one answer that are carried out
	MaxWave      = 4   // calls that run beside each other
)

// Models (docs/reference/model.md).
const (
	MaxModelFrame       = 64 << 20       // bytes of one line on the model socket, LF included
	MaxModelMessage     = 24 << 20       // bytes of the content and opaque data of one message as JSON: it fits in a ledger record
	MaxModelArguments   = 16 << 20       // bytes of the arguments of one call
	MaxModelParts       = 1024           // parts of one message a model sends
	MaxModelEvents      = 100_000        // events of one answer
	MaxModelMessages    = 1_000_000      // messages of one request
	MaxModelTools       = 1024           // tools one request declares
	MaxModelDescription = 64 << 10       // bytes of a declared tool's description
	MaxModelOptions     = 64             // options of one request
	MaxModelOption      = 4 << 10        // bytes of one option's value, and of a request's cache key
	MaxModelTokens      = 1 << 32        // tokens of a limit, and of a count a provider reports
	MaxModelDepth       = 1000           // nesting of arguments, and of opaque data
	MaxInvalid          = 4 << 10        // bytes kept of what is wrong with a call
	MaxFailureText      = 4 << 10        // bytes of the text of a failure
	MaxProviderCode     = 128            // bytes of a provider's own word for a failure
	MaxRetryAfter       = 24 * time.Hour // that a provider can ask to wait
	MaxModelConnections = 64             // connections of the model socket at a time

	ModelRequestWait = time.Minute            // from the connection until the request is there
	ModelDrain       = 5 * time.Second        // that running requests have when ctxmodel is to end
	ModelLastWords   = 250 * time.Millisecond // that a client has to take the last frames of a request that is given up, or to close
)

// HTTP of providers (docs/reference/model-openai.md).
const (
	MaxHTTPHead      = 256 << 10        // bytes of the headers of one answer
	MaxErrorBody     = 64 << 10         // bytes read of an answer that refuses
	MaxEvent         = 32 << 20         // bytes of one event: arguments of MaxModelArguments, escaped
	MaxEventStream   = 256 << 20        // bytes of one answer: MaxModelEvents events and what is around the text in them
	MaxIdleProviders = 32               // unused connections that are kept open, of all providers
	MaxProxies       = 16               // proxies connections are kept open through
	MaxDetectBody    = 1 << 20          // bytes read of what a server that detect asks says
	ProviderConnect  = 30 * time.Second // until name, connection and TLS are there
	ProviderHeaders  = 10 * time.Minute // from then until the headers of the answer are in: a local server loads its model meanwhile
	ProviderSilence  = 5 * time.Minute  // without one byte of the answer; servers that think long send comments
	ProviderError    = 10 * time.Second // for the text of an answer that refuses
	ProviderRequest  = 2 * time.Hour    // for all of one request, comments or not
	DetectTimeout    = 3 * time.Second  // for the answers of all servers that detect asks
	ProviderIdle     = 90 * time.Second // that an unused connection is kept open
	ProviderDrain    = time.Second      // for the rest of an answer after its last event, so that its connection can be used again
)

// Providers (docs/reference/model.md).
const (
	MaxProviders      = 256     // provider files
	MaxProviderModels = 1024    // models of one provider file
	MaxModelID        = 256     // bytes of a provider's own name for a model
	MaxURL            = 2 << 10 // bytes of a provider's base URL or proxy
	MinKey            = 8       // bytes of one key, at least: a shorter one would be in every text
	MaxKey            = 8 << 10 // bytes of one key
)

// The debug/script model (docs/reference/model.md).
const (
	MaxScript      = 64 << 20  // bytes of one script
	MaxScriptDelay = time.Hour // of one delay
)

// Prompts of model agents (docs/reference/prompt.md).
const (
	CharsPerToken    = 4         // characters a token of a context window counts for; a byte of JSON is charged as one
	MaxReserveTokens = 4096      // tokens kept back of a window for the answer; less of a small one
	MaxPrompt        = 48 << 20  // bytes of the message array of one request, whatever the window
	MaxSystemPrompt  = 1 << 20   // bytes of the system message
	HistoryBytes     = 128 << 10 // bytes of the messages after it, where the window is unknown
	MaxRuleFile      = 64 << 10  // bytes read of one AGENTS.md
	MaxRuleText      = 64_000    // characters of all of them in a prompt
	MaxSkillText     = 8000      // characters of the list of skills, where the window is unknown
	MaxSkillFiles    = 256       // SKILL.md files looked at for one prompt
	MaxSkillFront    = 16 << 10  // bytes of the front matter of one of them
	MaxSkillDepth    = 8         // levels of directories descended in search of them
	MaxSkillEntries  = 4096      // directory entries looked at in search of them
	MaxSkillAbout    = 1024      // characters kept of a skill's description
	ShortSkillAbout  = 160       // characters of it where not all fit
	MaxRuleDirs      = 64        // directories from the workspace down to cwd that are searched
	MaxWarnings      = 32        // warnings of one search
)

// What runs changed (docs/reference/changes.md).
const (
	MaxWalkEntries = 200_000         // entries of a workspace that are looked at after a run
	WalkTime       = 2 * time.Second // that looking at them may take
	MaxChanges     = 1000            // paths that the record of a run lists
	MaxChangeText  = 128 << 10       // bytes of them
)

// The chat (docs/reference/chat.md).
const (
	MaxShelf       = 256      // results of tools that /show can show
	MaxShelfBytes  = 8 << 20  // bytes of them, and of output that waits for the terminal
	MaxPaste       = 4 << 20  // bytes of all pastes in one message, and of one from $EDITOR
	MaxHistory     = 1000     // lines of history that are kept
	MaxHistoryLine = 8 << 10  // bytes of one of them
	MaxHistoryFile = 32 << 20 // bytes of the file
)

package toolshell

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
)

// Item is what a catalog knows of a tool.
type Item struct {
	Name        libctx.Tool
	Path        string
	Description string // text of lines
	Schema      string // JSON Schema of the arguments, "" if there is none
	Refused     string // why it can not be called, a denial code; "" if it can
}

// Catalog is where a shell finds tools: on a search path, or among those of an
// agent.
type Catalog interface {
	// List is every tool there is, by name, those that would be refused too.
	List() ([]Item, error)
	// Find is one tool that may be called. Another is an error of kind
	// errdefs.NotFound or errdefs.Denied, worded for whoever asked.
	Find(name libctx.Tool) (Item, error)
}

// Dirs is the catalog of host directories in path order, each tool with the file
// that Lookup finds. It refuses none: nobody's rights but the process's count.
type Dirs []string

// List implements Catalog. Metadata that can not be read is left out: a listing
// is no place to fail for one tool.
func (d Dirs) List() ([]Item, error) {
	found, err := List(d)
	if err != nil {
		return nil, err
	}
	items := make([]Item, 0, len(found))
	for _, f := range found {
		about, _ := f.Read("description")
		schema, _ := f.Read("schema")
		items = append(items, Item{Name: f.Name, Path: f.Path, Description: about, Schema: schema})
	}
	return items, nil
}

// Find implements Catalog. A name without a tool says what stood in the way, if
// something did.
func (d Dirs) Find(name libctx.Tool) (Item, error) {
	hit, ok, err := Lookup(d, name)
	if err != nil {
		return Item{}, err
	}
	if miss, some := hit.Reason(); !ok && some {
		return Item{}, errdefs.New(errdefs.NotFound, "%s: no such tool: %s %s", name, miss.Path, miss.Why)
	}
	if !ok {
		return Item{}, errdefs.New(errdefs.NotFound, "%s: no such tool on CTX_PATH", name).WithHint("tsh tools lists what there is")
	}
	item := Item{Name: name, Path: hit.Path}
	if item.Description, err = hit.Read("description"); err != nil {
		return Item{}, err
	}
	item.Schema, err = hit.Read("schema")
	return item, err
}

// Read is the text of one control file of the tool, "" if there is none. It
// follows no link but in the path of the tool itself.
func (h Hit) Read(file string) (string, error) {
	dir, err := atomicfile.OpenDir(h.Control())
	if errdefs.Is(err, errdefs.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	text, err := dir.ReadFile(file, libctx.MaxControlFile)
	if errdefs.Is(err, errdefs.NotFound) {
		return "", nil
	}
	return string(text), err
}

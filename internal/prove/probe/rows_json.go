//go:build linux

package probe

import (
	"encoding/json"
	"io"
	"strings"
)

// rowsDocument is what [WriteRows] writes: docs/formats/rows.schema.json.
type rowsDocument struct {
	Version int                 `json:"version"`
	Code    map[string]stepCode `json:"code"` // of the steps that only this runner has
	Rows    []rowData           `json:"rows"`
}

// stepCode says what a step does, and why no data says it.
type stepCode struct {
	Does string `json:"does"`
	Why  string `json:"why"`
}

// WriteRows writes all rows as JSON, for runners of others: what the files leave to
// their defaults, and what follows from other fields, is said of each row.
func WriteRows(w io.Writer) error {
	rows, err := entries(false)
	if err != nil {
		return err
	}
	doc := rowsDocument{Version: rowsVersion, Code: map[string]stepCode{}, Rows: rows}
	for name, v := range verbs() {
		if strings.HasPrefix(name, "go:") {
			doc.Code[name] = stepCode{v.what, v.why()}
		}
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(doc)
}

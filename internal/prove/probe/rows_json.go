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
	Code    map[string]stepCode `json:"code"` // the steps that only this runner has
	Rows    []rowData           `json:"rows"`
}

// stepCode describes what a step does, and why it is not data.
type stepCode struct {
	Does string `json:"does"`
	Why  string `json:"why"`
}

// WriteRows writes all rows as JSON, for runners of others: with the defaults of
// the files, and with what follows from other fields, in each row.
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

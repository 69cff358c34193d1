//go:build linux

package probe

import (
	"encoding/json"
	"io"
	"strings"
)

// rowsDocument is what [WriteRows] writes: docs/formats/rows.schema.json.
type rowsDocument struct {
	Version int               `json:"version"`
	Code    map[string]string `json:"code"` // what the steps do that only this runner has
	Rows    []rowData         `json:"rows"`
}

// WriteRows writes all rows as JSON, for runners of others: what the files leave to
// their defaults, and what follows from other fields, is said of each row.
func WriteRows(w io.Writer) error {
	rows, err := entries(false)
	if err != nil {
		return err
	}
	doc := rowsDocument{Version: rowsVersion, Code: map[string]string{}, Rows: rows}
	for name, v := range verbs() {
		if strings.HasPrefix(name, "go:") {
			doc.Code[name] = v.what
		}
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(doc)
}

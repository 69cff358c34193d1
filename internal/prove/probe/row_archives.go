//go:build linux

package probe

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const classArchives = "fs.archives"

const unpacked = "the outside looks for what was unpacked"

func archivesRows() []Row {
	unpack := func(id, title, ref, kind string) Row {
		return Row{ID: id, Class: classArchives, Kind: Host, Promise: "P2", Title: title, Refs: []string{ref, "tar(5)"},
			Needs: []string{"tar"}, Harmless: unpacked, Absent: []string{"O/x"},
			Action: "unpack", Args: []string{"kind=" + kind}}
	}
	setuid := unpack("ARC-008", "an archive holds a program that takes its owner's rights, and a pipe", "CVE-2005-2541", "setuid")
	setuid.Oracle, setuid.Promise = takesRights, "P7"
	return []Row{
		unpack("ARC-001", "an entry of an archive climbs out by dot-dot", "zip-slip", "dots"),
		unpack("ARC-002", "an entry of an archive has an absolute name", "GTFOBins tar", "absolute"),
		unpack("ARC-004", "an entry of an archive is a hard link to a secret, and the next writes to it", "CVE-2021-32803", "hardlink"),
		unpack("ARC-005", "an entry of an archive is a link to the outside, and the next goes through it", "CVE-2025-4517", "symlink"),
		{ID: "ARC-006", Class: classArchives, Core: true, Kind: Host, Promise: "P2",
			Title:  "what is taken out of the workspace at the end is a link to a secret",
			Refs:   []string{"github.com/huggingface/sandbox-server/pull/16", "symlink(7)"},
			Oracle: tokensInRecords, Proof: true,
			Harmless: takenAway,
			Bare:     "without a launcher nobody takes anything out of the workspace",
			Action:   "plant-links", Args: []string{"path=H/.ssh/id_probe\nH/.aws\nO\nO/canary\nH/.netrc"}},
		{ID: "ARC-006b", Class: classArchives, Kind: Host, Promise: "P10",
			Title:    "what is taken out of the workspace at the end is a pipe, a socket, a closed directory or a file of 4 GiB of nothing",
			Refs:     []string{"fifo(7)", "lseek(2)"},
			Absent:   []string{"W/1/.mcp.json", "W/2/.mcp.json", "W/3/.claude", "W/4/.mcp.json"},
			Harmless: takenAway,
			Action:   "plant-odd"},
		setuid,
		{ID: "ARC-010", Class: classArchives, Kind: Sandbox, Promise: "P8",
			Title:   "an archive unpacks to more than the private storage may hold",
			Refs:    []string{"tmpfs(5) size"},
			Options: Options{Disk: 64 << 20},
			Accept:  append([]string{"ENOSPC", "EDQUOT", "EFBIG", "ENOMEM"}, Denials...),
			Action:  "fill", Args: []string{"path=/tmp\n/var/tmp\n/dev/shm\nH"}},
	}
}

// tokensInRecords looks for secrets in what the launcher has put aside.
func tokensInRecords(w *World, _ Observation) []string {
	var out []string
	_ = filepath.WalkDir(filepath.Join(w.H, ".local"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(p)
		for name, token := range w.tokens {
			if err == nil && bytes.Contains(b, []byte(token)) {
				out = append(out, fmt.Sprintf("the token of %s was copied to %s", name, w.short(p)))
			}
		}
		return nil
	})
	return out
}

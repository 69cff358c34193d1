package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// What packages say about their origin. The project has no address: reports go to
// the page of the repository (SECURITY.md). The homepage is the path of the
// module.
const (
	maintainer = "The Holdfast maintainers"
	homepage   = "https://holdfast.dev/holdfast"
	summary    = "Runs AI coding agents inside a boundary that holds"
)

// packages makes the packages of an architecture for Debian and for RPM.
func (b *build) packages(arch string) error {
	for _, format := range []string{"deb", "rpm"} {
		contents, err := b.contents(arch)
		if err != nil {
			return err
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info := nfpm.WithDefaults(b.info(arch, contents))
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(b.out(), packager.ConventionalFileName(info)))
		if err != nil {
			return err
		}
		if err := errors.Join(packager.Package(info, f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) info(arch string, contents files.Contents) *nfpm.Info {
	info := &nfpm.Info{
		Name: "holdfast", Arch: arch, Platform: "linux", Version: b.packaged(), Release: "1",
		Section: "utils", Priority: "optional", Maintainer: maintainer,
		Description: summary + "\nholdfast contains a command and everything it starts; holdfast-prove shows what a sandbox holds.",
		Homepage:    homepage, License: "Apache-2.0", MTime: b.date,
	}
	if b.version == development {
		info.VersionSchema = "none"
	}
	info.Contents = contents
	info.Suggests = []string{"git"}
	info.Scripts.PostInstall = filepath.Join(b.src(), "packaging/postinstall.sh")
	info.Scripts.PreRemove = filepath.Join(b.src(), "packaging/preremove.sh")
	info.RPM.BuildHost, info.RPM.Summary = "release", summary
	return info
}

// contents are the files of the stage below /usr, and the directories that are
// removed with the package unless other packages own them too.
func (b *build) contents(arch string) (files.Contents, error) {
	var all files.Contents
	stage := b.stage(arch)
	err := filepath.WalkDir(stage, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(stage, path)
		if err != nil {
			return err
		}
		c := &files.Content{Destination: filepath.Join("/usr", rel), FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: b.date}}
		if e.IsDir() {
			if owned.MatchString(rel) {
				c.Type = files.TypeDir
				all = append(all, c)
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		c.Source, c.FileInfo.Mode = path, fs.FileMode(fileMode(info))
		all = append(all, c)
		return nil
	})
	return all, err
}

// owned matches the directories that a small system lacks.
var owned = regexp.MustCompile(`^share/((doc/)?holdfast|fish|zsh)(/|$)`)

package story

import (
	"cmp"

	"holdfast.dev/holdfast/internal/floor/event"
)

// file takes what was done to files.
func (b *Builder) file(e *event.Event) {
	name := foundPath(e)
	switch {
	case e.Verdict == event.Denied:
		b.addTouch(e, (*Program).refusedList, name, "", refusedAs(e))
		b.addPath(e, name, func(f *File) { f.Refused++ })
		return
	case e.Error != "":
		if of := b.programOf(e); of != nil {
			of.Failed++
		}
		return
	}
	if b.drops != nil {
		b.drops.Add(e)
	}
	private := e.Detail[event.DetailKept] != ""
	what := "" // of what was written
	if private {
		what = KeptPrivate
	}
	to := cmp.Or(e.Detail["to_resolved"], e.Detail["to"])
	switch e.Action {
	case event.FileOpen:
		b.addTouch(e, (*Program).read, name, "", "")
		b.addPath(e, name, func(f *File) { f.Read++ })
	case event.FileWrite, event.FileMkdir, event.FileTruncate, event.FileMknod:
		b.addTouch(e, (*Program).wrote, name, "", what)
		b.addPath(e, name, func(f *File) { f.Written++; f.Gone, f.Private = false, private })
	case event.FileLink, event.FileSymlink:
		b.addTouch(e, (*Program).wrote, name, e.Detail["to"], what)
		b.addPath(e, name, func(f *File) { f.Written++; f.Gone, f.Private = false, private })
	case event.FileRename:
		b.addTouch(e, (*Program).renamedList, name, to, what)
		b.addPath(e, name, func(f *File) { f.Removed++; f.Gone = true })
		b.addPath(e, to, func(f *File) { f.Written++; f.Gone, f.Private = false, private })
	case event.FileUnlink:
		b.addTouch(e, (*Program).removedList, name, "", "")
		b.addPath(e, name, func(f *File) { f.Removed++; f.Gone = true })
	case event.FileChmod, event.FileChown, event.FileXattr:
		b.addTouch(e, (*Program).changedList, name, "", changedTo(e))
		b.addPath(e, name, func(f *File) { f.Changed++ })
	}
}

// KeptPrivate is what a story says of a change that did not reach the host.
const KeptPrivate = "kept private"

func changedTo(e *event.Event) string {
	for _, k := range []string{"mode", "owner", "name"} {
		if v := e.Detail[k]; v != "" {
			return k + " " + v
		}
	}
	return ""
}

// addPath notes what happened to a path.
func (b *Builder) addPath(e *event.Event, name string, note func(*File)) {
	if b.limits.Files == 0 {
		return
	}
	f := b.files[cutText(name)]
	if f == nil {
		if len(b.files) >= b.limits.Files || !b.admit(len(name), ofFiles) {
			b.s.Left.Files++
			return
		}
		f = &File{Path: b.retain(name), First: e.Seq}
		b.files[f.Path] = f
		b.s.Files = append(b.s.Files, f)
	}
	note(f)
	f.Last = e.Seq
	f.By = appendFew(f.By, b.execOf(e))
}

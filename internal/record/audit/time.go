package audit

import "time"

// appendTime appends t in UTC as RFC 3339 with as many digits of the second's
// fraction as it needs.
func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(b, time.RFC3339Nano)
}

// time accepts what appendTime writes.
func (p *parser) time(v []byte) {
	const form = "0000-00-00T00:00:00"
	if len(v) < len(form)+1 || v[len(v)-1] != 'Z' {
		p.fail("the time is not in UTC as in RFC 3339")
		return
	}
	for i := range len(form) {
		if form[i] == '0' && v[i]-'0' > 9 || form[i] != '0' && v[i] != form[i] {
			p.fail("the time is not in UTC as in RFC 3339")
			return
		}
	}
	two := func(i int) int { return int(v[i]-'0')*10 + int(v[i+1]-'0') }
	month, day := two(5), two(8)
	year := two(0)*100 + two(2)
	if month < 1 || month > 12 || day < 1 || day > days(year, month) || two(11) > 23 || two(14) > 59 || two(17) > 59 {
		p.fail("there is no such time")
		return
	}
	f := v[len(form) : len(v)-1] // "" or as in ".25"
	if len(f) == 0 {
		return
	}
	for _, c := range f[1:] {
		if c-'0' > 9 {
			p.fail("the time is not in UTC as in RFC 3339")
			return
		}
	}
	if f[0] != '.' || len(f) < 2 || len(f) > 10 || f[len(f)-1] == '0' {
		p.fail("the time's fraction is not in canonical form")
	}
}

// days is how many days a month has.
func days(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

package audit

import "time"

// appendTime appends t in UTC as RFC 3339 with as many digits of the second's
// fraction as it needs.
func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(b, time.RFC3339Nano)
}

// parseTime reads what appendTime writes and nothing else. Package time accepts other
// spellings, and formatting its result to compare it takes several times as long.
func parseTime(v []byte) (t time.Time, ok bool) {
	const whole = "2006-01-02T15:04:05"
	if len(v) <= len(whole) || v[4] != '-' || v[7] != '-' || v[10] != 'T' || v[13] != ':' || v[16] != ':' || v[len(v)-1] != 'Z' {
		return t, false
	}
	year, month, day := 100*twoDigits(v[0:])+twoDigits(v[2:]), twoDigits(v[5:]), twoDigits(v[8:])
	hour, minute, second := twoDigits(v[11:]), twoDigits(v[14:]), twoDigits(v[17:])
	nanosecond, ok := parseFraction(v[len(whole) : len(v)-1])
	if !ok || year > 9999 || month == 0 || month > 12 || day == 0 || day > daysOf(year, month) || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	const unixEpoch = 719528 // days from the first of the year 0 to that of 1970
	days := 365*year + (year+3)/4 - (year+99)/100 + (year+399)/400 + day - 1 - unixEpoch
	for m := 1; m < month; m++ {
		days += daysOf(year, m)
	}
	return time.Unix(int64(86400*days+3600*hour+60*minute+second), int64(nanosecond)).UTC(), true
}

// twoDigits is the number that v begins with; 10,000 if those are not two digits.
func twoDigits(v []byte) int {
	tens, ones := v[0]-'0', v[1]-'0'
	if tens > 9 || ones > 9 {
		return 10_000
	}
	return int(10*tens + ones)
}

// parseFraction reads nothing, or a point and up to nine digits of which the last is
// not 0, in nanoseconds.
func parseFraction(v []byte) (n int, ok bool) {
	if len(v) == 0 {
		return 0, true
	}
	if v[0] != '.' || len(v) == 1 || len(v) > len(".000000000") || v[len(v)-1] == '0' {
		return 0, false
	}
	for i := 1; i < len(".000000000"); i++ {
		digit := byte(0)
		if i < len(v) {
			digit = v[i] - '0'
		}
		if digit > 9 {
			return 0, false
		}
		n = 10*n + int(digit)
	}
	return n, true
}

// daysOf is how many days a month from 1 to 12 has.
func daysOf(year, month int) int {
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

package consent

import (
	"strings"
	"unicode"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Letters that cannot be distinguished from an ASCII letter, digit or sign in
// most typefaces: a word of only such letters reads as another word.
const lookalikes = "аеорсухіјѕһԁԛԝӏѵАВЕЗКМНОРСТУХІЈЅҮԌԚԜӀѴЬ" + // Cyrillic
	"ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹͿϜ" + // Greek
	"օսոՕՍՏԼհցյզ" + // Armenian
	"ıȷǀǃƽƨƅſꞌꞋꓸꓹꓺꓻꓼꓽ" + // Latin, and the signs of Lisu
	"ᎪᎠᎡᎢᎥᎩᎫᎬᎳᎵᎷᎻᎽᏀᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏤᏦᏧᏩᏮᏴ" + // Cherokee
	"ⵏⵑⵔⵝⴹⵋⵎⵡⵣ" + // Tifinagh
	"一丨ノㅡㅣ" // strokes

// Letters that resemble one closely enough to pass in a word of ASCII letters.
const nearLookalikes = "вгкмнптьъзбчэёїґћђєӓӧ" + // Cyrillic
	"αβγεηικρτυωχσςλπδθφ" + // Greek
	"աբգդեթլխծկձղճմնշռքֆ" + // Armenian
	"ニエハロト工口三卜ㅇㄱㄴ" + // strokes
	"\u05d5\u05d8\u05df\u05e1\u05c0\u0627\u0647\u0649\u06d5\u07ca" // Hebrew, Arabic, N'Ko

// lookalikeRanges are blocks that repeat or imitate the Latin letters: phonetic
// letters and scripts of the past, many of whose letters are as ours.
var lookalikeRanges = [][2]rune{
	{0x0250, 0x02af}, {0x2c60, 0x2c7f}, {0x2c80, 0x2cff}, {0x03e2, 0x03ef}, {0xa720, 0xa7ff}, {0xab30, 0xab6f}, {0xa4d0, 0xa4ff},
	{0x16a0, 0x16ff}, {0x10280, 0x1034f}, {0x10400, 0x104ff}, {0x10500, 0x1056f}, {0x118a0, 0x118ff}, {0x16e40, 0x16e9f}, {0x16f00, 0x16f9f},
}

// nearLookalikeRanges are scripts in use many of whose letters resemble Latin ones.
var nearLookalikeRanges = [][2]rune{{0x13a0, 0x13ff}, {0xab70, 0xabbf}, {0x1400, 0x167f}, {0x18b0, 0x18ff}, {0x2d30, 0x2d7f}}

// otherForms are characters that are another form of a letter or digit: wide,
// raised, encircled, joined or of mathematics. None of them belongs to ordinary
// text.
var otherForms = [][2]rune{
	{0xaa, 0xaa}, {0xba, 0xba}, {0x0132, 0x0133}, {0x013f, 0x0140}, {0x0149, 0x0149}, {0x01c4, 0x01cc}, {0x01f1, 0x01f3}, {0x1e9a, 0x1e9a},
	{0x03d0, 0x03d6}, {0x03f0, 0x03f1}, {0x03f4, 0x03f5}, {0x02b0, 0x02ff}, {0x1d00, 0x1dbf}, {0x2070, 0x218f}, {0x2460, 0x24ff}, {0x3200, 0x33ff}, {0xa700, 0xa71f},
	{0xfb00, 0xfdff}, {0xfe70, 0xffef}, {0x10780, 0x107bf}, {0x1ccd6, 0x1ccf9}, {0x1d400, 0x1d7ff}, {0x1df00, 0x1dfff}, {0x1e030, 0x1e08f}, {0x1f100, 0x1f2ff},
}

func within(r rune, ranges [][2]rune) bool {
	for _, x := range ranges {
		if r >= x[0] && r <= x[1] {
			return true
		}
	}
	return false
}

func isLookalike(r rune) bool {
	return strings.ContainsRune(lookalikes, r) || within(r, lookalikeRanges)
}

// resembles reports whether r may pass for an ASCII character among ASCII characters.
func resembles(r rune) bool {
	return isLookalike(r) || strings.ContainsRune(nearLookalikes, r) || within(r, nearLookalikeRanges) || unicode.Is(unicode.Nd, r)
}

// backward reports whether r is a letter of a right-to-left script, which
// reverses what is beside it.
func backward(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// ordinary reports whether r is a letter or digit beyond ASCII that looks like
// what it is.
func ordinary(r rune) bool {
	return unicode.In(r, unicode.L, unicode.Nd) && !text.Invisible(r) && !within(r, otherForms)
}

// attaches reports whether the mark r, after n others, can be on the letter
// base and still be seen there.
func attaches(r, base rune, n int) bool {
	switch {
	case !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Lm) || text.Invisible(r) || within(r, otherForms):
		return false
	case base < 0x80:
		return n == 0 && r >= 0x0300 && r <= 0x0331 // accents, and no strokes through the letter
	}
	return n < 3 && (unicode.Is(unicode.Lm, r) || !(r >= 0x0334 && r <= 0x0338))
}

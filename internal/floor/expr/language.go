package expr

import (
	"path"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/parser"
)

// macros are those of the language, but for has: in a map where every key has a
// value, has(detail.x) asks whether the key is there.
func macros() []cel.Macro {
	has := parser.NewGlobalMacro(operators.Has, 1, func(h parser.ExprHelper, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		if args[0].Kind() != ast.SelectKind {
			return nil, h.NewError(args[0].ID(), "has() wants a detail, such as has(detail.status)")
		}
		s := args[0].AsSelect()
		return h.NewCall(operators.In, h.NewLiteral(types.String(s.FieldName())), s.Operand()), nil
	})
	return []cel.Macro{has, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro, cel.MapMacro, cel.MapFilterMacro, cel.FilterMacro}
}

// functions are what conditions on paths and names need besides the language.
func functions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("under",
			cel.MemberOverload("string_under_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
				cel.BinaryBinding(func(name, dir ref.Val) ref.Val {
					return types.Bool(under(string(name.(types.String)), string(dir.(types.String))))
				}))),
		cel.Function("base",
			cel.MemberOverload("string_base", []*cel.Type{cel.StringType}, cel.StringType,
				cel.UnaryBinding(func(name ref.Val) ref.Val {
					return types.String(base(string(name.(types.String))))
				}))),
		cel.Function("lowerAscii",
			cel.MemberOverload("string_lower_ascii", []*cel.Type{cel.StringType}, cel.StringType,
				cel.UnaryBinding(func(s ref.Val) ref.Val {
					return types.String(lowerASCII(string(s.(types.String))))
				}))),
	}
}

// under reports whether the path name is dir or below it. Both are taken as
// they are: dots and links are the matter of who recorded the path.
func under(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimRight(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// base is the last name of a path; "" of "".
func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}

// lowerASCII changes A to Z alone, so that the bytes of what is not UTF-8 stay.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

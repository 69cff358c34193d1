#include "textflag.h"

// func int80(nr, a, b, c, d, e uint32) int32
//
// Enters the kernel by the door of 32 bit programs. It needs no stack beyond
// its own frame, so it may run in a child that a raw clone has made.
TEXT ·int80(SB), NOSPLIT, $0-28
	MOVL nr+0(FP), AX
	MOVL a+4(FP), BX
	MOVL b+8(FP), CX
	MOVL c+12(FP), DX
	MOVL d+16(FP), SI
	MOVL e+20(FP), DI
	INT  $0x80
	MOVL AX, ret+24(FP)
	RET

// func callVsyscall() int64
TEXT ·callVsyscall(SB), NOSPLIT, $16-8
	MOVQ $0, DI
	MOVQ $0xffffffffff600400, AX
	CALL AX
	MOVQ AX, ret+0(FP)
	RET

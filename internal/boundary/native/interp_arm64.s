#include "textflag.h"

// The interpreter of launch programs for arm64: the same instruction by
// instruction as interp_amd64.s, whose comments hold here too.
//
//	R19  the current operation
//	R20  its reference mask

TEXT ·interp(SB), NOSPLIT|NOFRAME, $0
	MOVD RSP, R0
	AND  $~65535, R0
	MOVD $0x10800020, R1
	MOVD R0, (R1)
	MOVD $0x0f010000, R19

loop:
	MOVWU 56(R19), R20
	MOVD  8(R19), R0
	TBZ   $0, R20, a1
	MOVD  (R0), R0

a1:
	MOVD 16(R19), R1
	TBZ  $1, R20, a2
	MOVD (R1), R1

a2:
	MOVD 24(R19), R2
	TBZ  $2, R20, a3
	MOVD (R2), R2

a3:
	MOVD 32(R19), R3
	TBZ  $3, R20, a4
	MOVD (R3), R3

a4:
	MOVD 40(R19), R4
	TBZ  $4, R20, a5
	MOVD (R4), R4

a5:
	MOVD 48(R19), R5
	TBZ  $5, R20, a6
	MOVD (R5), R5

a6:
	MOVWU 0(R19), R8
	MOVD  $0xffffffff, R6
	CMP   R6, R8
	BEQ   store            // no system call: the value of the first argument
	SVC

store:
	MOVD 64(R19), R7
	CBZ  R7, judge
	MOVD R0, (R7)

judge:
	MOVWU 4(R19), R7
	MOVD  72(R19), R9
	CMP   $1, R7
	BEQ   next
	CMP   $2, R7
	BNE   j3
	CMP   R9, R0
	BEQ   next
	B     fail

j3:
	CMP $3, R7
	BNE j4
	CMP R9, R0
	BEQ jump
	B   must

j4:
	CMP $4, R7
	BEQ jump
	CMP $5, R7
	BNE j6
	CMP R9, R0
	BEQ next
	B   must

j6:
	CMP $6, R7
	BNE j7
	CMP R9, R0
	BEQ jump
	B   next

j7:
	CMP $7, R7
	BNE must
	CMN $4095, R0
	BLO fail
	B   next

must:
	CMN $4095, R0
	BHS fail

next:
	ADD $88, R19
	B   loop

jump:
	MOVD 80(R19), R19
	B    loop

fail:
	MOVD $0x10800000, R1
	MOVD $1, R9
	MOVD R9, (R1)
	MOVD R19, 8(R1)
	MOVD R0, 16(R1)
	MOVD $3, R0
	MOVD $24, R2
	MOVD $64, R8           // write
	SVC
	MOVD $125, R0
	MOVD $94, R8           // exit_group
	SVC
	BRK

TEXT ·interpEnd(SB), NOSPLIT|NOFRAME, $0
	BRK

DATA ·interpAddr+0(SB)/8, $·interp(SB)
GLOBL ·interpAddr(SB), RODATA|NOPTR, $8
DATA ·interpEndAddr+0(SB)/8, $·interpEnd(SB)
GLOBL ·interpEndAddr(SB), RODATA|NOPTR, $8

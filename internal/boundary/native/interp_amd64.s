#include "textflag.h"

// The interpreter of launch programs: see interp.go for the instruction and
// program.go for who writes it. It is position independent, uses no stack and
// calls nothing, because its bytes are copied into an ELF file of their own.
//
//	R12  the current operation
//	R13  its reference mask

#define OPS  $0x0f010000
#define SIZE $88
#define MSG  $0x10800000

TEXT ·interp(SB), NOSPLIT|NOFRAME, $0
	MOVQ SP, AX
	ANDQ $~4095, AX
	MOVQ $0x10800020, BX
	MOVQ AX, (BX)          // stackPage in program.go
	MOVQ OPS, R12

loop:
	MOVL 56(R12), R13
	MOVQ 8(R12), DI
	TESTL $1, R13
	JZ   a1
	MOVQ (DI), DI

a1:
	MOVQ 16(R12), SI
	TESTL $2, R13
	JZ   a2
	MOVQ (SI), SI

a2:
	MOVQ 24(R12), DX
	TESTL $4, R13
	JZ   a3
	MOVQ (DX), DX

a3:
	MOVQ 32(R12), R10
	TESTL $8, R13
	JZ   a4
	MOVQ (R10), R10

a4:
	MOVQ 40(R12), R8
	TESTL $16, R13
	JZ   a5
	MOVQ (R8), R8

a5:
	MOVQ 48(R12), R9
	TESTL $32, R13
	JZ   a6
	MOVQ (R9), R9

a6:
	MOVL 0(R12), AX
	CMPL AX, $0xffffffff
	JNE  kernel
	MOVQ DI, AX            // no system call: the value of the first argument
	JMP  store

kernel:
	SYSCALL

store:
	MOVQ  64(R12), BX
	TESTQ BX, BX
	JZ    judge
	MOVQ  AX, (BX)

judge:
	MOVL 4(R12), BX
	CMPL BX, $1            // ignore
	JEQ  next
	CMPL BX, $2            // equal or fail
	JNE  j3
	CMPQ AX, 72(R12)
	JEQ  next
	JMP  fail

j3:
	CMPL BX, $3            // equal jumps, an error fails
	JNE  j4
	CMPQ AX, 72(R12)
	JEQ  jump
	JMP  must

j4:
	CMPL BX, $4            // always jumps
	JEQ  jump
	CMPL BX, $5            // equal is fine, another error fails
	JNE  j6
	CMPQ AX, 72(R12)
	JEQ  next
	JMP  must

j6:
	CMPL BX, $6            // equal jumps, everything else goes on
	JNE  j7
	CMPQ AX, 72(R12)
	JEQ  jump
	JMP  next

j7:
	CMPL BX, $7            // an error is what is wanted
	JNE  must
	CMPQ AX, $-4095
	JCS  fail
	JMP  next

must:
	CMPQ AX, $-4095
	JCC  fail              // unsigned: an errno

next:
	ADDQ SIZE, R12
	JMP  loop

jump:
	MOVQ 80(R12), R12
	JMP  loop

fail:
	MOVQ MSG, SI
	MOVQ $1, (SI)
	MOVQ R12, 8(SI)
	MOVQ AX, 16(SI)
	MOVL $1, AX            // write(3, MSG, 24)
	MOVL $3, DI
	MOVL $24, DX
	SYSCALL
	MOVL $231, AX          // exit_group(125)
	MOVL $125, DI
	SYSCALL
	INT $3

TEXT ·interpEnd(SB), NOSPLIT|NOFRAME, $0
	INT $3

DATA ·interpAddr+0(SB)/8, $·interp(SB)
GLOBL ·interpAddr(SB), RODATA|NOPTR, $8
DATA ·interpEndAddr+0(SB)/8, $·interpEnd(SB)
GLOBL ·interpEndAddr(SB), RODATA|NOPTR, $8
